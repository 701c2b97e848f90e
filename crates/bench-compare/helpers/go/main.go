// The helper of the peers written in Go: bbolt and goleveldb.
//
//	helper <peer> <socket>
//
// It listens on an abstract Unix socket, says "ready" on its standard output, and serves one connection
// for the store and one for each writer and reader. wire.go describes requests and answers, and
// src/peers/helper/wire.rs does so for the other side. Each answer has the nanoseconds that the peer's own
// calls took. Decoding a request and sending an answer do not count.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime/debug"
)

// openStore tells how to open a store.
type openStore struct {
	dir         string
	budgetBytes uint64
	records     uint64
	rawBytes    uint64
	create      bool
	durable     bool
}

// store is an open database, for any number of connections.
type store interface {
	writer() writer
	reader() (reader, error)
	sync() error
	// settle finishes background work, and says whether there is such work.
	settle() (bool, error)
	close() error
}

// change is a put, or a removal if it has no value.
type change struct {
	key, value []byte
	remove     bool
}

// writer belongs to one connection.
type writer interface {
	// apply makes changes in the open transaction, and begins one if none is open. The bytes of the
	// changes stay unchanged until the transaction ends.
	apply(changes []change) error
	commit() error
	abandon() error
}

// reader belongs to one connection.
type reader interface {
	refresh() error
	// get appends a value to a buffer.
	get(key []byte, to []byte) (value []byte, found bool, err error)
	// visit visits records in key order, from a key on or from an end.
	visit(from []byte, limit uint64, down bool, seen *sum) error
	close() error
}

var peers = map[string]func(openStore) (store, error){
	"bbolt":     openBolt,
	"goleveldb": openLevel,
}

func main() {
	if len(os.Args) != 3 || peers[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: helper bbolt|goleveldb <socket>")
		os.Exit(2)
	}
	listener, err := net.Listen("unix", "@"+os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	server := &server{open: peers[os.Args[1]]}
	for {
		connection, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go server.serve(connection)
	}
}

// keepMemoryTo makes the collector work harder as memory nears the budget.
func keepMemoryTo(budgetBytes uint64) {
	debug.SetMemoryLimit(int64(budgetBytes))
}
