package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/pace"
)

// All instances of a program share the limit of a provider. No server answers in this example, so no call
// gets a permit in time.
func ExamplePace() {
	leases, err := client.New(client.Config{Servers: []string{"127.0.0.1:1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer leases.Close()
	source, err := client.NewPace(leases, "mail")
	if err != nil {
		fmt.Println(err)
		return
	}
	mail, err := pace.New(pace.Config{Provider: "mail", Source: source})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mail.Close()
	err = mail.Acquire(context.Background(), 50*time.Millisecond)
	fmt.Println(errors.Is(err, pace.ErrTimeout))
	// Output:
	// true
}
