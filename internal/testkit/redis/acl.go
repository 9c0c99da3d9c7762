package redis

import (
	"crypto/rand"
	"strconv"
	"testing"
)

// keeper is the name of the user that the kit itself is, on servers with users.
const keeper = "testkit"

// StartACL is Start for a server that nobody may use without a name: its default
// user is off, and user has the password and exactly the rules given, such as "~*",
// "-@all", "+evalsha". Do and CLI speak as a user of the kit's own, who may do all.
// As "default" the user needs no name, only the password, as with requirepass.
func StartACL(tb testing.TB, user, password string, rules ...string) *Server {
	tb.Helper()
	a := access{user: keeper, password: rand.Text()}
	return start(tb, a, func(dir string, port int) []string {
		words := common(dir,
			"--port", strconv.Itoa(port),
			"--user", keeper, "on", ">"+a.password, "~*", "&*", "+@all",
			"--user", user, "on", ">"+password,
		)
		words = append(words, rules...)
		if user != "default" {
			words = append(words, "--user", "default", "off")
		}
		return words
	})
}
