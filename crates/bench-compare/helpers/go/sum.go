package main

import "encoding/binary"

// sum is the result of a scan. shim/peer.h has the same function.
type sum struct {
	records, sum uint64
}

func (s *sum) add(key, value []byte) {
	x := words(key) * 0x9E3779B97F4A7C15
	x = (x ^ (x >> 29)) + words(value)
	x *= 0xBF58476D1CE4E5B9
	s.records++
	s.sum += x ^ (x >> 32)
}

// words adds the bytes as little-endian 64-bit words, the last one padded with zeros.
func words(bytes []byte) uint64 {
	var sum uint64
	for len(bytes) >= 8 {
		sum += binary.LittleEndian.Uint64(bytes)
		bytes = bytes[8:]
	}
	if len(bytes) > 0 {
		var last [8]byte
		copy(last[:], bytes)
		sum += binary.LittleEndian.Uint64(last[:])
	}
	return sum
}
