package table_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/headgate/headgate"
	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/rule"
)

// A rule that limits each tenant to this process's part of its capacity. No server answers in this example, so the
// fallback of the rule decides.
func Example() {
	leases, err := client.New(client.Config{Servers: []string{"127.0.0.1:1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer leases.Close()
	buckets, err := bucket.New(bucket.Config{Source: leases.Source()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer buckets.Close()
	tenant, _ := rule.ParsePart("header:X-Tenant")
	g, err := guard.New(guard.Config{
		Leases: buckets,
		Rules: []guard.Rule{{
			Rule:     rule.Rule{Name: "orders", Key: []rule.Part{tenant}},
			Lease:    guard.Lease{Resource: "db/{1}"},
			Fallback: guard.FallbackAllow,
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var a guard.Answer
	err = g.Decide(context.Background(), &headgate.Request{Path: "/orders"}, &a)
	fmt.Println(err, a.Verdict, a.Closest().Decision.Reason, errors.Is(a.StoreError, bucket.ErrNoLease))
	// Output:
	// <nil> allow store_unavailable true
}
