#!/bin/bash
# Product: package context of Go 1.26.
# Guess:   A context type of one's own with the method AfterFunc lets package context
#          derive contexts without a goroutine. That holds for its descendants too:
#          context.WithValue changes a value, not how a context ends.
# Happens: context.WithValue hides the method. Each WithCancel or AfterFunc below a
#          value context starts a goroutine that waits until the context ends, while
#          directly below the own context there is none.
# Follows: A server with a cheap context of its own pays a goroutine a request as soon
#          as a handler or a middleware adds one value before the request is sent on,
#          for example to a client library that watches the context.
set -eu
want='goroutines for 1000 derived contexts: directly 0, below WithValue 1000'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'GO'
module finding

go 1.26
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
)

// own ends when end is called. It has the method that package context looks for.
type own struct {
	context.Context

	mu    sync.Mutex
	done  chan struct{}
	after []func()
}

func (o *own) Done() <-chan struct{} { return o.done }

func (o *own) AfterFunc(f func()) (stop func() bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.after = append(o.after, f)
	return func() bool { return true }
}

type key struct{}

// started returns how many goroutines 1,000 derived contexts start.
func started(parent context.Context) int {
	before := runtime.NumGoroutine()
	for range 1000 {
		context.AfterFunc(parent, func() {})
	}
	return runtime.NumGoroutine() - before
}

func main() {
	make := func() *own { return &own{Context: context.Background(), done: make(chan struct{})} }
	fmt.Printf("goroutines for 1000 derived contexts: directly %d, below WithValue %d\n",
		started(make()), started(context.WithValue(make(), key{}, 1)))
}
GO
echo "version: $(go env GOVERSION), package context"
got=$(go run .)
echo "counted: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: a value context hides the method AfterFunc of its parent"
