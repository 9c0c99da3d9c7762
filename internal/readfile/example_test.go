package readfile_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/internal/readfile"
)

func ExampleLine() {
	folder, err := os.MkdirTemp("", "headgate")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "password")
	if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	password, err := readfile.Line(path, 4096, "password")
	fmt.Println(len(password), err)
	// Output: 6 <nil>
}
