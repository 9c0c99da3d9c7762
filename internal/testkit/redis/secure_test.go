package redis_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/redis"
)

// says sends one inline command and returns the first line of the reply.
func says(conn net.Conn, words string) string {
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, words+"\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(line)
}

// TestTLS checks that the server has a certificate of the test's CA. It must demand a
// client certificate only if configured.
func TestTLS(t *testing.T) {
	for _, c := range []struct {
		story       string
		settings    []string
		certificate bool
		want        string
	}{
		{"optional, with", nil, true, "+PONG"},
		{"optional, without", nil, false, "+PONG"},
		{"required, with", []string{"--tls-auth-clients", "yes"}, true, "+PONG"},
		{"required, without", []string{"--tls-auth-clients", "yes"}, false, "certificate required"},
	} {
		t.Run(c.story, func(t *testing.T) {
			s, certs := redis.StartTLS(t, c.settings...)
			config := certs.Client.Clone()
			if !c.certificate {
				config.Certificates = nil
			}
			conn, err := tls.Dial("tcp", s.Addr, config)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if got := says(conn, "PING"); !strings.Contains(got, c.want) {
				t.Errorf("PING returns %q: want %q", got, c.want)
			}
			if got := s.CLI("PING"); got != "PONG" {
				t.Errorf("redis-cli prints %q", got)
			}
			if pem, err := os.ReadFile(certs.CAFile); err != nil || !strings.Contains(string(pem), "CERTIFICATE") {
				t.Errorf("with the CA file: %q, %v", pem, err)
			}
		})
	}
	s, _ := redis.StartTLS(t)
	stranger := redis.NewCertificates(t)
	if conn, err := tls.Dial("tcp", s.Addr, stranger.Client); err == nil {
		conn.Close()
		t.Error("a client with another CA trusts the server")
	}
}

// TestACL checks that only named users have access, each with exactly its own rights.
func TestACL(t *testing.T) {
	s := redis.StartACL(t, "gate", "sluice", "~gate:*", "-@all", "+set", "+ping")
	for _, c := range []struct{ words, want string }{
		{"PING", "-NOAUTH"},
		{"AUTH gate wrong", "-WRONGPASS"},
		{"AUTH gate sluice", "+OK"},
		{"SET gate:a 1", "+OK"},
		{"SET other:a 1", "-NOPERM"},
		{"GET gate:a", "-NOPERM"},
	} {
		t.Run(c.words, func(t *testing.T) {
			conn, err := net.Dial("tcp", s.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if !strings.HasPrefix(c.want, "-NOAUTH") && !strings.HasPrefix(c.words, "AUTH") {
				says(conn, "AUTH gate sluice")
			}
			if got := says(conn, c.words); !strings.HasPrefix(got, c.want) {
				t.Errorf("%q: want %s", got, c.want)
			}
		})
	}
	if got := s.CLI("GET", "gate:a"); got != "1" {
		t.Errorf("the kit's own user reads %q: want 1", got)
	}
}

// TestPassword checks that the default user can have a password.
func TestPassword(t *testing.T) {
	s := redis.StartACL(t, "default", "sluice", "~*", "+@all")
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, c := range []struct{ words, want string }{
		{"PING", "-NOAUTH"}, {"AUTH wrong", "-WRONGPASS"}, {"AUTH sluice", "+OK"}, {"PING", "+PONG"},
	} {
		if got := says(conn, c.words); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s returns %q: want %s", c.words, got, c.want)
		}
	}
}
