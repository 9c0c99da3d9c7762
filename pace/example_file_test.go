package pace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/pace"
)

// A file has the limit of a provider and this instance's index. When the file changes, the limit
// of the running program changes.
func ExampleFile() {
	dir, err := os.MkdirTemp("", "pace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "mail.json")
	if err := os.WriteFile(path, []byte(`{"limit": "48000/s", "instances": 96}`), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	source, err := pace.File(pace.FileConfig{Path: path, Index: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	mail, err := pace.New(pace.Config{Provider: "mail", Source: source, Logger: quiet()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mail.Close()

	ctx := context.Background()
	if err := mail.Ready(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mail.Acquire(ctx, 10*time.Second))
	stats := mail.Stats()
	fmt.Println(stats.Limit, stats.Instances, stats.Index)
	// Output:
	// <nil>
	// 48000 96 3
}
