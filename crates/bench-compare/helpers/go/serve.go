package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// server has the one store of this process, which the first connection opens and closes.
type server struct {
	open  func(openStore) (store, error)
	store store
}

// session is one connection: the store's, a writer's or a reader's.
type session struct {
	server *server
	writer writer
	reader reader
	answer []byte
	took   time.Duration
}

// timed measures calls of the peer.
func (s *session) timed(calls func() error) error {
	began := time.Now()
	err := calls()
	s.took += time.Since(began)
	return err
}

// serve answers until the other side goes away. It abandons what that side left open.
func (server *server) serve(connection net.Conn) {
	s := &session{server: server}
	defer connection.Close()
	defer s.end()
	from := bufio.NewReaderSize(connection, 1<<16)
	for {
		kind, request, err := readRequest(from)
		if err != nil {
			return
		}
		s.took = 0
		s.answer = append(s.answer[:0], make([]byte, answerHeadBytes)...)
		status := byte(0)
		if err := s.handle(kind, request); err != nil {
			status = 1
			s.answer = append(s.answer[:answerHeadBytes], err.Error()...)
		}
		finish(s.answer, status, s.took.Nanoseconds())
		if _, err := connection.Write(s.answer); err != nil {
			return
		}
	}
}

func (s *session) end() {
	if s.writer != nil {
		if err := s.writer.abandon(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if s.reader != nil {
		if err := s.reader.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

func (s *session) handle(kind byte, request body) error {
	if kind == kindOpen {
		return s.openStore(request)
	}
	store := s.server.store
	if store == nil {
		return errors.New("no store is open")
	}
	switch kind {
	case kindApply, kindCommit, kindAbandon:
		return s.write(store, kind, request)
	case kindGet, kindScan, kindRange, kindRefresh:
		return s.read(store, kind, request)
	case kindSync:
		return s.timed(store.sync)
	case kindSettle:
		return s.timed(func() error {
			settles, err := store.settle()
			s.flag(settles)
			return err
		})
	case kindClose:
		s.server.store = nil
		return s.timed(store.close)
	}
	return fmt.Errorf("no request has the kind %d", kind)
}

func (s *session) openStore(request body) error {
	how := openStore{create: request.flag(), durable: request.flag()}
	how.budgetBytes, how.records, how.rawBytes = request.u64(), request.u64(), request.u64()
	how.dir = string(request.bytes)
	if request.short {
		return errShort
	}
	return s.timed(func() (err error) {
		s.server.store, err = s.server.open(how)
		return err
	})
}

func (s *session) write(store store, kind byte, request body) error {
	changes, err := request.changes()
	if err != nil {
		return err
	}
	if s.writer == nil {
		s.writer = store.writer()
	}
	return s.timed(func() error {
		if kind == kindAbandon {
			return s.writer.abandon()
		}
		if err := s.writer.apply(changes); err != nil || kind == kindApply {
			return err
		}
		return s.writer.commit()
	})
}

func (s *session) read(store store, kind byte, request body) (err error) {
	if s.reader == nil {
		if err = s.timed(func() (err error) { s.reader, err = store.reader(); return err }); err != nil {
			return err
		}
	}
	switch kind {
	case kindGet:
		return s.get(request)
	case kindRefresh:
		return s.timed(s.reader.refresh)
	}
	limit, down, from := ^uint64(0), false, []byte(nil)
	if kind == kindRange {
		limit, down = request.u64(), request.flag()
		if request.flag() {
			from = append(make([]byte, 0, len(request.bytes)), request.bytes...)
		}
	}
	if request.short {
		return errShort
	}
	var seen sum
	err = s.timed(func() error { return s.reader.visit(from, limit, down, &seen) })
	s.answer = binary.LittleEndian.AppendUint64(s.answer, seen.records)
	s.answer = binary.LittleEndian.AppendUint64(s.answer, seen.sum)
	return err
}

// get copies each value into the answer. This counts as the peer's time, as comparing does elsewhere.
func (s *session) get(request body) error {
	keys, err := request.keys()
	if err != nil {
		return err
	}
	return s.timed(func() error {
		for _, key := range keys {
			place := len(s.answer)
			answer, found, err := s.reader.get(key, append(s.answer, 0, 0, 0, 0))
			if err != nil {
				return err
			}
			s.answer = answer
			if found {
				valueBytes := len(answer) - place - 4
				binary.LittleEndian.PutUint32(answer[place:], uint32(valueBytes)+1)
			}
		}
		return nil
	})
}

func (s *session) flag(set bool) {
	if set {
		s.answer = append(s.answer, 1)
	} else {
		s.answer = append(s.answer, 0)
	}
}
