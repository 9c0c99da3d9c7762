package open_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/config/open"
)

// A change of the file changes the limits of the guard.
func ExampleFollow() {
	folder, err := os.MkdirTemp("", "headgate")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "headgate.yaml")
	write := func(limit string) {
		text := "version: 1\nrules: [{name: search, key: [ip], limits: [" + limit + "]}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			fmt.Println(err)
		}
	}

	write("100/m")
	c, err := config.Load(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := open.Guard(c)
	if err != nil {
		fmt.Println(err)
		return
	}

	write("200/m")
	ctx, cancel := context.WithCancel(context.Background())
	err = open.Follow(ctx, path, c, g, func(next *config.Config, err error) {
		if err != nil {
			fmt.Println("nothing has changed:", err)
			return
		}
		fmt.Println("the limit is", next.Rules[0].Policies[0].Limit)
		cancel()
	})
	fmt.Println("followed to the end:", err == nil)
	// Output:
	// the limit is 200/1m
	// followed to the end: true
}
