package election_test

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/cmd/internal/lease/election"
)

// A server takes part in the elections of its group. No etcd answers in this example, so no master is known.
func Example() {
	e, err := election.New(election.Config{
		Open: func(life context.Context) (*clientv3.Client, error) {
			return clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, Context: life})
		},
		Group: "eu", Address: "eu-1.example.com:8081",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	e.Run(ctx, func(s election.Status) { fmt.Printf("master %q, this server: %v\n", s.Master, s.Mine) })
	// Output:
	// master "", this server: false
}
