package main

import (
	"bytes"
	"errors"
	"path/filepath"

	"go.etcd.io/bbolt"
)

var bucketName = []byte("bench")

// boltMapBytesMin is only address space. It is large because growing the map waits for all readers.
const boltMapBytesMin = 16 << 30

type boltStore struct {
	db *bbolt.DB
}

func openBolt(how openStore) (store, error) {
	options := *bbolt.DefaultOptions
	options.NoSync = !how.durable
	options.NoGrowSync = !how.durable
	options.NoFreelistSync = true
	options.FreelistType = bbolt.FreelistMapType
	options.InitialMmapSize = max(boltMapBytesMin, int(4*how.rawBytes+64*how.records))
	db, err := bbolt.Open(filepath.Join(how.dir, "data.bolt"), 0o644, &options)
	if err != nil {
		return nil, err
	}
	if how.create {
		err = db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket(bucketName)
			return err
		})
	} else {
		err = db.View(func(tx *bbolt.Tx) error {
			if tx.Bucket(bucketName) == nil {
				return errors.New("no bucket is there")
			}
			return nil
		})
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return &boltStore{db: db}, nil
}

func (s *boltStore) writer() writer          { return &boltWriter{db: s.db} }
func (s *boltStore) sync() error             { return s.db.Sync() }
func (s *boltStore) settle() (bool, error)   { return false, nil }
func (s *boltStore) close() error            { return s.db.Close() }
func (s *boltStore) reader() (reader, error) { r := &boltReader{db: s.db}; return r, r.refresh() }

type boltWriter struct {
	db *bbolt.DB
	tx *bbolt.Tx
}

func (w *boltWriter) apply(changes []change) (err error) {
	if w.tx == nil {
		if w.tx, err = w.db.Begin(true); err != nil {
			return err
		}
	}
	bucket := w.tx.Bucket(bucketName)
	for _, change := range changes {
		if change.remove {
			err = bucket.Delete(change.key)
		} else {
			err = bucket.Put(change.key, change.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *boltWriter) commit() error {
	tx := w.tx
	w.tx = nil
	return tx.Commit()
}

func (w *boltWriter) abandon() error {
	if w.tx == nil {
		return nil
	}
	tx := w.tx
	w.tx = nil
	return tx.Rollback()
}

type boltReader struct {
	db     *bbolt.DB
	tx     *bbolt.Tx
	bucket *bbolt.Bucket
}

func (r *boltReader) refresh() (err error) {
	if err = r.close(); err != nil {
		return err
	}
	if r.tx, err = r.db.Begin(false); err != nil {
		return err
	}
	r.bucket = r.tx.Bucket(bucketName)
	return nil
}

func (r *boltReader) get(key []byte, to []byte) ([]byte, bool, error) {
	value := r.bucket.Get(key)
	return append(to, value...), value != nil, nil
}

// boltSeek goes to the first record of a range. Seek finds the first key at or after the requested one. On
// the way down that may be one too far.
func boltSeek(at *bbolt.Cursor, from []byte, down bool) (key, value []byte) {
	switch {
	case from == nil && down:
		return at.Last()
	case from == nil:
		return at.First()
	}
	key, value = at.Seek(from)
	if !down || bytes.Equal(key, from) {
		return key, value
	}
	if key == nil {
		return at.Last()
	}
	return at.Prev()
}

func (r *boltReader) visit(from []byte, limit uint64, down bool, seen *sum) error {
	at := r.bucket.Cursor()
	key, value := boltSeek(at, from, down)
	for key != nil && seen.records < limit {
		seen.add(key, value)
		if down {
			key, value = at.Prev()
		} else {
			key, value = at.Next()
		}
	}
	return nil
}

func (r *boltReader) close() error {
	if r.tx == nil {
		return nil
	}
	tx := r.tx
	r.tx = nil
	return tx.Rollback()
}
