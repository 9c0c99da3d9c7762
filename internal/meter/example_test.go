package meter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/meter"
)

// A program counts two decisions, and reads the file.
func Example() {
	folder, err := os.MkdirTemp("", "usage")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	lines, err := meter.NewLines(meter.LinesConfig{Folder: filepath.Join(folder, "lines"), Instance: "eu-1"})
	if err != nil {
		panic(err)
	}
	m, err := meter.Open(meter.Config{Instance: "eu-1", Folder: filepath.Join(folder, "journal"), Outputs: []meter.Output{lines}})
	if err != nil {
		panic(err)
	}
	for range 2 { // Guards do this: see guard.Config.Meter.
		m.Count(headgate.Usage{Customer: "acme", Quota: "calls", Admitted: 5, Metered: 1})
	}
	if err := m.Close(context.Background()); err != nil {
		panic(err)
	}
	files, _ := filepath.Glob(filepath.Join(folder, "lines", "*.jsonl"))
	text, _ := os.ReadFile(files[0])
	var line struct {
		Customer string `json:"customer"`
		Admitted int64  `json:"admitted"`
		Metered  int64  `json:"metered"`
	}
	_ = json.Unmarshal(text, &line)
	fmt.Printf("%+v\n", line)
	// Output: {Customer:acme Admitted:10 Metered:2}
}
