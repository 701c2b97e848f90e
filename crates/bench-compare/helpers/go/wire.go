package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// A request has a length of four bytes (of all that follows), a kind of one byte, and a body. An answer has
// a length, a status byte (0: done, 1: failed, and the body is a message), eight bytes of nanoseconds, and
// a body. All integers are little-endian.
const (
	kindOpen    = 1  // u8 create, u8 durable, u64 budget, u64 records, u64 raw bytes, the directory
	kindApply   = 2  // changes, each u8 remove, u32 and u32 lengths, key, value
	kindCommit  = 3  // changes, then the commit
	kindAbandon = 4  // forgets the open transaction
	kindGet     = 5  // keys, each u32 length, key; answers each u32 length + 1 or 0, value
	kindScan    = 6  // answers u64 records, u64 sum
	kindRange   = 7  // u64 limit, u8 down, u8 from a key, the key; answers as scan
	kindRefresh = 8  //
	kindSync    = 9  //
	kindSettle  = 10 // answers u8 whether there is such work
	kindClose   = 11 //
)

const answerHeadBytes = 4 + 1 + 8

var errShort = errors.New("a request ends early")

// body is the rest of a request. A read past its end makes it short.
type body struct {
	bytes []byte
	short bool
}

func (b *body) take(count int) []byte {
	if count > len(b.bytes) {
		b.short, b.bytes = true, nil
		return make([]byte, 8)[:min(count, 8)]
	}
	taken := b.bytes[:count:count]
	b.bytes = b.bytes[count:]
	return taken
}

func (b *body) flag() bool  { return b.take(1)[0] != 0 }
func (b *body) u32() int    { return int(binary.LittleEndian.Uint32(b.take(4))) }
func (b *body) u64() uint64 { return binary.LittleEndian.Uint64(b.take(8)) }

func (b *body) changes() ([]change, error) {
	var changes []change
	for len(b.bytes) > 0 {
		remove := b.flag()
		keyBytes, valueBytes := b.u32(), b.u32()
		changes = append(changes, change{key: b.take(keyBytes), value: b.take(valueBytes), remove: remove})
		if b.short {
			return nil, errShort
		}
	}
	return changes, nil
}

func (b *body) keys() ([][]byte, error) {
	var keys [][]byte
	for len(b.bytes) > 0 {
		keys = append(keys, b.take(b.u32()))
		if b.short {
			return nil, errShort
		}
	}
	return keys, nil
}

// readRequest returns a request in its own memory, because a transaction keeps what it was given.
func readRequest(from *bufio.Reader) (kind byte, rest body, err error) {
	var head [5]byte
	if _, err = io.ReadFull(from, head[:]); err != nil {
		return
	}
	length := binary.LittleEndian.Uint32(head[:4])
	if length == 0 {
		return 0, body{}, errShort
	}
	bytes := make([]byte, length-1)
	_, err = io.ReadFull(from, bytes)
	return head[4], body{bytes: bytes}, err
}

// finish writes the head of an answer. The buffer has room for it at its start.
func finish(answer []byte, status byte, nanoseconds int64) {
	binary.LittleEndian.PutUint32(answer, uint32(len(answer)-4))
	answer[4] = status
	binary.LittleEndian.PutUint64(answer[5:], uint64(nanoseconds))
}
