package network

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// Forger is a relay that replaces replies of a server, as an attacker on the network can.
type Forger struct {
	// Addr is the address for clients.
	Addr string

	upstream string
	listener net.Listener
	work     sync.WaitGroup

	mu    sync.Mutex
	open  map[net.Conn]bool
	after []byte
	forge func(io.Writer) error // nil when no reply is to be replaced
	made  int
}

// NewForger opens a relay to a server until the test ends.
func NewForger(tb testing.TB, upstream string) *Forger {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends at once
	if err != nil {
		tb.Fatal(err)
	}
	f := &Forger{Addr: listener.Addr().String(), upstream: upstream, listener: listener, open: map[net.Conn]bool{}}
	f.work.Go(f.accept)
	tb.Cleanup(f.close)
	return f
}

// Replace makes forge write in place of the next reply to a command that contains word.
func (f *Forger) Replace(word string, forge func(io.Writer) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after, f.forge = []byte(word), forge
}

// Made returns the number of replaced replies.
func (f *Forger) Made() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made
}

func (f *Forger) accept() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.DialTimeout("tcp", f.upstream, timeout) //nolint:noctx // the time is bounded
		if err != nil {
			_ = client.Close()
			continue
		}
		f.mu.Lock()
		f.open[client], f.open[server] = true, true
		f.mu.Unlock()
		forgeries := make(chan func(io.Writer) error, 1)
		f.work.Go(func() { f.carry(client, server, func(p []byte) error { return f.up(p, server, forgeries) }) })
		f.work.Go(func() { f.carry(server, client, func(p []byte) error { return f.down(p, client, forgeries) }) })
	}
}

// carry forwards one direction until either side has ended.
func (f *Forger) carry(from, to net.Conn, hand func([]byte) error) {
	data := make([]byte, chunkSize)
	for {
		n, err := from.Read(data)
		if n > 0 && err == nil {
			err = hand(data[:n])
		}
		if err != nil {
			_ = from.Close()
			_ = to.Close()
			f.mu.Lock()
			delete(f.open, from)
			f.mu.Unlock()
			return
		}
	}
}

// up forwards commands, and remembers the command with the reply to replace.
func (f *Forger) up(p []byte, server io.Writer, forgeries chan<- func(io.Writer) error) error {
	f.mu.Lock()
	if f.forge != nil && bytes.Contains(p, f.after) {
		forgeries <- f.forge
		f.forge = nil
		f.made++
	}
	f.mu.Unlock()
	_, err := server.Write(p)
	return err
}

func (f *Forger) down(p []byte, client io.Writer, forgeries <-chan func(io.Writer) error) error {
	select {
	case forge := <-forgeries:
		return forge(client)
	default:
	}
	_, err := client.Write(p)
	return err
}

func (f *Forger) close() {
	_ = f.listener.Close()
	f.mu.Lock()
	for conn := range f.open {
		_ = conn.Close()
	}
	f.mu.Unlock()
	f.work.Wait()
}
