package ctl

import (
	"fmt"
	"regexp"
)

// SourceSchema gives the SQL of a schema, by the function that makes it from a valid name.
func SourceSchema(name string, sql func(string) string) (string, error) {
	const most = 48
	if len(name) > most || !regexp.MustCompile(`^[a-z_][a-z0-9_]*$`).MatchString(name) {
		return "", NewConfigError(fmt.Errorf("--schema %q is not valid: use 1 to %d small letters, digits and _, which do not begin with "+
			"a digit", name, most))
	}
	return sql(name), nil
}
