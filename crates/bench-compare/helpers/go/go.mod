module bench-compare/helper

go 1.25.0

require (
	github.com/syndtr/goleveldb v1.0.1-0.20220721030215-126854af5e6d
	go.etcd.io/bbolt v1.5.0
)

require (
	github.com/golang/snappy v0.0.4 // indirect
	golang.org/x/sys v0.45.0 // indirect
)
