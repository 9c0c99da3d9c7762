package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/etcd"
)

// A pacer with a part from etcd. The example needs a server, so it does not run.
func ExampleNew() { //nolint:testableexamples // it needs a server
	again := backoff.DefaultConfig
	again.MaxDelay = time.Second // By default, gRPC waits for up to two minutes before it connects again.
	client, err := clientv3.New(clientv3.Config{
		Endpoints:         []string{"etcd-1:2379", "etcd-2:2379", "etcd-3:2379"},
		DialKeepAliveTime: 10 * time.Second,
		Logger:            etcd.ClientLogger(slog.Default()),
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: time.Second}),
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	source, err := etcd.New(etcd.Config{Client: client, Provider: "mail", OnLoss: etcd.Hold})
	if err != nil {
		fmt.Println(err)
		return
	}
	mail, err := pace.New(pace.Config{Provider: "mail", Source: source})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mail.Close() // Close gives this instance's part to the others at once.
	if err := mail.Acquire(context.Background(), 2*time.Second); err != nil {
		fmt.Println("not within two seconds:", err)
	}
}

// A program of the operator doubles a limit, unless the limit has changed since the program read
// it. The example needs a server, so it does not run.
func ExampleLimits() { //nolint:testableexamples // it needs a server
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"etcd-1:2379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	limits := etcd.Limits{Client: client}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	mail, err := limits.Get(ctx, "mail")
	if err != nil {
		fmt.Println(err)
		return
	}
	mail.Limit.Count *= 2
	switch _, err := limits.Set(ctx, "mail", mail.Limit, mail.Revision); {
	case errors.Is(err, etcd.ErrConflict):
		fmt.Println("another program was faster:", err)
	case err != nil:
		fmt.Println(err)
		return
	}
}

// New refuses an invalid configuration.
func ExampleNew_errors() {
	_, err := etcd.New(etcd.Config{Client: &clientv3.Client{}, Provider: "e-mail/eu"})
	fmt.Println(err)
	// Output: pace/etcd: Provider "e-mail/eu" has '/': use A-Z, a-z, 0-9 and . _ : - only
}
