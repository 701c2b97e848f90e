package main

import (
	"bytes"
	"errors"
	"path/filepath"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"
)

const levelBufferBytes = 8 << 20

type levelStore struct {
	db      *leveldb.DB
	durable bool
}

func openLevel(how openStore) (store, error) {
	keepMemoryTo(how.budgetBytes)
	// Half of the budget is the cache: the collector lets memory grow beyond what is in use.
	db, err := leveldb.OpenFile(filepath.Join(how.dir, "goleveldb"), &opt.Options{
		ErrorIfExist:           how.create,
		ErrorIfMissing:         !how.create,
		Compression:            opt.NoCompression,
		Filter:                 filter.NewBloomFilter(10),
		WriteBuffer:            levelBufferBytes,
		BlockCacheCapacity:     int(how.budgetBytes / 2),
		CompactionTableSize:    16 << 20,
		OpenFilesCacheCapacity: 4096,
		DisableSeeksCompaction: true,
	})
	if err != nil {
		return nil, err
	}
	return &levelStore{db: db, durable: how.durable}, nil
}

func (s *levelStore) writer() writer          { return &levelWriter{store: s} }
func (s *levelStore) reader() (reader, error) { return &levelReader{db: s.db}, nil }
func (s *levelStore) settle() (bool, error)   { return true, s.db.CompactRange(util.Range{}) }
func (s *levelStore) close() error            { return s.db.Close() }

// sync begins a transaction. That first writes the data that only the log holds into a table, and syncs it.
// A synced write of nothing would do nothing.
func (s *levelStore) sync() error {
	tx, err := s.db.OpenTransaction()
	if err != nil {
		return err
	}
	tx.Discard()
	return nil
}

type levelWriter struct {
	store *levelStore
	batch leveldb.Batch
}

func (w *levelWriter) apply(changes []change) error {
	for _, change := range changes {
		if change.remove {
			w.batch.Delete(change.key)
		} else {
			w.batch.Put(change.key, change.value)
		}
	}
	return nil
}

func (w *levelWriter) commit() error {
	err := w.store.db.Write(&w.batch, &opt.WriteOptions{Sync: w.store.durable})
	w.batch.Reset()
	return err
}

func (w *levelWriter) abandon() error {
	w.batch.Reset()
	return nil
}

type levelReader struct {
	db *leveldb.DB
}

func (r *levelReader) refresh() error { return nil }
func (r *levelReader) close() error   { return nil }

func (r *levelReader) get(key []byte, to []byte) ([]byte, bool, error) {
	value, err := r.db.Get(key, nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return to, false, nil
	}
	return append(to, value...), err == nil, err
}

func (r *levelReader) visit(from []byte, limit uint64, down bool, seen *sum) error {
	at := r.db.NewIterator(nil, &opt.ReadOptions{DontFillCache: limit == ^uint64(0)})
	defer at.Release()
	var there bool
	switch {
	case from == nil && down:
		there = at.Last()
	case from == nil:
		there = at.First()
	default:
		there = at.Seek(from)
		if down && !there {
			there = at.Last()
		} else if down && !bytes.Equal(at.Key(), from) {
			there = at.Prev()
		}
	}
	for there && seen.records < limit {
		seen.add(at.Key(), at.Value())
		if down {
			there = at.Prev()
		} else {
			there = at.Next()
		}
	}
	return at.Error()
}
