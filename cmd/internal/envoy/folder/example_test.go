package folder_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/cmd/internal/envoy/folder"
	"github.com/headgate/headgate/guard"
)

// A folder has a limit of 5 requests a minute. This program prints the domain and ends.
func Example() {
	root, err := os.MkdirTemp("", "limits")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	text := "domain: shop\ndescriptors:\n- {key: user, rate_limit: {unit: minute, requests_per_unit: 5}}\n"
	if err := os.WriteFile(filepath.Join(root, "shop.yaml"), []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	source, err := folder.New(folder.Config{Root: root})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	apply := func(domains []guard.Domain) error {
		fmt.Println(domains[0].Name, domains[0].Descriptors[0].Key)
		cancel()
		return nil
	}
	fmt.Println(source.Follow(ctx, apply, func(err error) { fmt.Println(err) }))
	// Output:
	// shop user
	// <nil>
}
