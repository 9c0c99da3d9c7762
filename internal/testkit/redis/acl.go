package redis

import (
	"crypto/rand"
	"strconv"
	"testing"
)

// kitUser is the name of the user for this package's own commands, on servers with users.
const kitUser = "testkit"

// StartACL is Start for a server that requires a user. The default user is off. user has the
// password and exactly the given rules, like "~*", "-@all", "+evalsha". With the name "default",
// clients need only the password, as with requirepass. Do and CLI use a user of this package
// that has all permissions.
func StartACL(tb testing.TB, user, password string, rules ...string) *Server {
	tb.Helper()
	a := access{user: kitUser, password: rand.Text()}
	return start(tb, a, func(dir string, port int) []string {
		words := common(dir,
			"--port", strconv.Itoa(port),
			"--user", kitUser, "on", ">"+a.password, "~*", "&*", "+@all",
			"--user", user, "on", ">"+password,
		)
		words = append(words, rules...)
		if user != "default" {
			words = append(words, "--user", "default", "off")
		}
		return words
	})
}
