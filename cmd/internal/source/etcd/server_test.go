package etcd_test

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/cmd/internal/source/etcd"
	"github.com/headgate/headgate/cmd/internal/testkit/etcdclient"
	"github.com/headgate/headgate/cmd/internal/testkit/sourcetest"
	"github.com/headgate/headgate/internal/config/source"
	server "github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/internal/testkit/network"
)

func TestMain(m *testing.M) { leak.Main(m) }

// realServer is a server for the suite.
type realServer struct {
	*server.Server

	client *clientv3.Client
	places atomic.Int64
}

func start(t *testing.T) *realServer {
	t.Helper()
	s := server.Start(t)
	return &realServer{Server: s, client: etcdclient.New(t, s.Addr)}
}

// place is a prefix.
type place struct {
	server *realServer
	prefix string
}

func (s *realServer) Place(t *testing.T) sourcetest.Place { t.Helper(); return s.place() }

func (s *realServer) place() *place {
	return &place{s, fmt.Sprintf("/test/%d/", s.places.Add(1))}
}

func (p *place) open(t *testing.T, c etcd.Config) *etcd.Source {
	t.Helper()
	c.Prefix = p.prefix
	if c.Endpoints == nil {
		c.Endpoints = []string{p.server.Addr}
	}
	if c.Timeout == 0 {
		c.Timeout = sourcetest.Patience
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := etcd.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (p *place) Open(t *testing.T, o sourcetest.Options) source.Writer {
	t.Helper()
	return p.open(t, etcd.Config{MaxObjects: o.MaxObjects, MaxBytes: o.MaxBytes, Timeout: o.Timeout})
}

func (p *place) Link(t *testing.T) *network.Link {
	t.Helper()
	return network.New(t, p.server.Addr)
}

func (p *place) Through(t *testing.T, link *network.Link, o sourcetest.Options) source.Writer {
	t.Helper()
	return p.open(t, etcd.Config{MaxObjects: o.MaxObjects, MaxBytes: o.MaxBytes, Timeout: o.Timeout, Endpoints: []string{link.Addr}})
}

func (p *place) KeepRecords(t *testing.T, n int) source.Writer {
	t.Helper()
	return p.open(t, etcd.Config{MaxRecords: n})
}

func (p *place) KeepRecordBytes(t *testing.T, n int) source.Writer {
	t.Helper()
	return p.open(t, etcd.Config{MaxRecordBytes: n})
}

func (p *place) Commit(t *testing.T, edits ...sourcetest.Edit) {
	t.Helper()
	var ops []clientv3.Op
	for _, e := range edits {
		op := clientv3.OpPut(p.prefix+e.Key.String(), e.Text)
		if e.Text == "" {
			op = clientv3.OpDelete(p.prefix + e.Key.String())
		}
		ops = append(ops, op)
	}
	if _, err := p.server.client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
		t.Error(err)
	}
}

// put writes one key below the prefix.
func (p *place) put(t *testing.T, key, value string) int64 {
	t.Helper()
	r, err := p.server.client.Put(t.Context(), p.prefix+key, value)
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.GetRevision()
}

// TestContract runs the suite of all writers on a real etcd.
func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, start(t), stories()...)
}
