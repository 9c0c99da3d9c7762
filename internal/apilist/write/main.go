// Command write updates the lists of the public packages below the root, its argument, and removes the
// lists of packages that no longer exist.
package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/internal/apilist"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "write: name the root")
		os.Exit(2)
	}
	if err := write(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(ctx context.Context, root string) error {
	lists, _, err := apilist.All(ctx, root)
	if err != nil {
		return err
	}
	to, err := os.OpenRoot(filepath.Join(root, apilist.Folder))
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	old, err := fs.Glob(to.FS(), "*.txt")
	if err != nil {
		return err
	}
	for _, name := range old {
		if _, there := lists[name]; !there {
			if err := to.Remove(name); err != nil {
				return err
			}
		}
	}
	for name, text := range lists {
		if err := to.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
