package postgres

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/headgate/headgate/internal/config/source"
)

// advice says what to do about an error of PostgreSQL; "" if there is nothing to add.
func advice(err error) string {
	if text := source.TLSAdvice(err, "source.postgres.tls"); text != "" {
		return text
	}
	var network net.Error
	switch code(err) {
	case "3F000", "42P01": // invalid_schema_name, undefined_table
		return ": make the tables with headgate ctl source init | psql DATABASE"
	case "25006": // read_only_sql_transaction
		return ": the server refuses writes, such as a former primary or a replica: name the primary in source.postgres.hosts, or " +
			"lead its address there"
	case "42501": // insufficient_privilege
		return ": grant the user the rights that docs/sources.md lists"
	case "42703": // undefined_column
		return ": the tables are older than this program: add the columns with headgate ctl source init | psql DATABASE"
	case "23514": // check_violation
		return ": the tables refuse the object: if they are older than this program, run headgate ctl source init | psql DATABASE"
	case "42883", "42704": // undefined_function, undefined_object
		return ": use PostgreSQL 13 or newer"
	case "28P01", "28000": // invalid_password, invalid_authorization_specification
		return ": correct the user, the password or pg_hba.conf"
	case "3D000": // invalid_catalog_name
		return ": make the database, or correct its name"
	case "53300": // too_many_connections
		return ": raise max_connections, or end other clients"
	case "55P03": // lock_not_available
		return ": another transaction holds the row: end it and try again"
	case "":
		if strings.Contains(err.Error(), "failed to write startup message") {
			// It is the first write after the handshake, and the server's reason is not read.
			return ": with TLS, the server may have refused the client certificate: set source.postgres.tls.cert and " +
				"source.postgres.tls.key to one that it accepts. Without TLS, check that the server runs, and the network between"
		}
		if errors.Is(err, errSilent) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) {
			return ": check that the server runs, and the network between"
		}
	}
	return ""
}
