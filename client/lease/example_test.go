package client_test

import (
	"fmt"

	client "github.com/headgate/headgate/client/lease"
)

// A program that limits its queries to a database by its lease.
func Example() {
	leases, err := client.New(client.Config{
		Servers: []string{"leaf-1:8081", "leaf-2:8081"},
		OnLoss:  client.Safe,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer leases.Close()
	orders, err := leases.Lease("db/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	orders.Demand(1) // for each query
	fmt.Println(orders.Resource(), orders.Rate(), "queries a second until a server answers")
	// Output:
	// db/orders 0 queries a second until a server answers
}
