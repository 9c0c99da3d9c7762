package main

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap" //nolint:depguard // etcd's client takes no other logger: this one says nothing
)

// etcdClient returns a client of a test server.
func etcdClient(t *testing.T, addr string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
