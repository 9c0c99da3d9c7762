package main

import (
	"io"

	"github.com/headgate/headgate/cmd/internal/ctl"
	"github.com/headgate/headgate/cmd/internal/source/postgres"
)

// sourceCommand prepares a source of rules, plans and customers.
type sourceCommand struct {
	Init initSourceCommand `cmd:"" help:"Print the SQL that makes the tables of a source in PostgreSQL, or brings them up to date."`
}

type initSourceCommand struct {
	Schema string `help:"Schema of the tables, as source.postgres.schema has it." default:"headgate" placeholder:"NAME"`
}

// Run prints the SQL. An owner of the database runs it, so that the instances need no right to make tables.
func (s initSourceCommand) Run(stdout io.Writer) error {
	text, err := ctl.SourceSchema(s.Schema, postgres.Schema)
	if err == nil {
		_, err = io.WriteString(stdout, text)
	}
	return err
}
