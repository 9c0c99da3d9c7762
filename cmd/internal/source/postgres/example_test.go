package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/source/postgres"
	"github.com/headgate/headgate/internal/config/source"
)

// printer prints what a source has.
type printer struct{ end context.CancelFunc }

func (p printer) Changed(c source.Change) {
	fmt.Println(len(c.Objects), "objects at revision", c.Revision)
	p.end()
}
func (printer) Reached(time.Time) {}
func (printer) Failed(err error)  { fmt.Println(err) }

// A program makes the tables and prints how many objects they have. The example needs a server, so it does not run.
func ExampleSource_Follow() { //nolint:testableexamples // it needs a server
	s, err := postgres.Open(postgres.Config{
		Hosts: []string{"db-1:5432"}, Database: "headgate", User: "headgate",
		Password: func() (string, error) { return "the text of a file", nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Init(ctx); err != nil {
		fmt.Println(err)
		return
	}
	s.Follow(ctx, printer{cancel})
}

// Schema gives the SQL of the tables, for a database that this program may not change.
func ExampleSchema() {
	for line := range strings.Lines(postgres.Schema("limits")) {
		if strings.HasPrefix(line, "CREATE TABLE") {
			fmt.Print(line)
		}
	}
	// Output:
	// CREATE TABLE IF NOT EXISTS limits.objects (
	// CREATE TABLE IF NOT EXISTS limits.changes (
	// CREATE TABLE IF NOT EXISTS limits.audit (
	// CREATE TABLE IF NOT EXISTS limits.state (
}
