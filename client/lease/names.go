package client

import (
	"github.com/headgate/headgate/internal/lease/bucket"
)

// Source gives leases to a table.
type Source = bucket.Source

// Table has the leases that the rules of a guard spend, for guard.Config.Leases.
type Table = bucket.Table

// TableConfig configures a Table.
type TableConfig = bucket.Config

// NewTable makes a table of leases, with the Source of a client. Close releases its leases.
func NewTable(c TableConfig) (*Table, error) { return bucket.New(c) }
