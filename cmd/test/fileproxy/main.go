// Command fileproxy tidies the modules of this workspace and publishes them to a folder that the go command reads as a
// module proxy. It changes the go.mod and go.sum files below the root.
//
//	go run ./cmd/test/fileproxy [-forget] VERSION FOLDER    run it at the root
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/headgate/headgate/cmd/test/internal/fileproxy"
)

func main() {
	forget := flag.Bool("forget", false, "remove the checksums of the workspace's modules afterwards: they hold for a release only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *forget, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "fileproxy:", err)
		os.Exit(1) //nolint:gocritic // stop has no effect on a process that ends
	}
}

func run(ctx context.Context, forget bool, args []string) error {
	if len(args) != 2 {
		return errors.New("name a version and a folder, as in: fileproxy v0.2.0 /tmp/proxy")
	}
	env, remove, err := fileproxy.Environment(ctx, args[1])
	if err != nil {
		return err
	}
	defer remove()
	if err := fileproxy.Publish(ctx, ".", args[0], args[1], env); err != nil {
		return err
	}
	modules, err := fileproxy.Modules(".")
	if err != nil {
		return err
	}
	for _, m := range modules {
		if m.Published {
			if _, err := fmt.Fprintln(os.Stdout, m.Path(), args[0]); err != nil {
				return err
			}
		}
		if forget {
			if err := fileproxy.ForgetSums(m.Folder); err != nil {
				return err
			}
		}
	}
	return nil
}
