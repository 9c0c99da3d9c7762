package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/cmd/internal/source/etcd"
	"github.com/headgate/headgate/internal/config/source"
)

// A program of the operator moves a customer to another plan, unless another writer was first. The example needs a
// server, so it does not run.
func ExampleSource_Write() { //nolint:testableexamples // it needs a server
	s, err := etcd.Open(etcd.Config{Endpoints: []string{"etcd-1:2379", "etcd-2:2379", "etcd-3:2379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	acme := source.Key{Kind: source.Customer, Name: "acme"}
	before, err := s.Get(ctx, acme)
	if err != nil {
		fmt.Println(err)
		return
	}
	const after = "{plan: pro}"
	_, err = s.Write(ctx, source.Write{
		Key: acme, Text: after, Revision: before.Revision,
		Record: source.Record{Caller: "billing", Action: "plan", Before: before.Text, After: after, Reason: "paid"},
	})
	if _, ok := errors.AsType[*source.ConflictError](err); ok {
		fmt.Println("another writer was first: read the customer again")
	}
}

// Open refuses an invalid configuration.
func ExampleOpen_errors() {
	_, err := etcd.Open(etcd.Config{Endpoints: []string{"etcd-1:2379"}, Prefix: "headgate"})
	fmt.Println(err)
	// Output: config/source/etcd: Prefix "headgate" (8 bytes): use at most 256 bytes that end with /, like /headgate/config/
}
