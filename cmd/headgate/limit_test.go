package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/headgate/headgate/pace/etcd"
)

// nowhere is an address where nothing listens.
const nowhere = "127.0.0.1:1"

// TestLimitUsage checks that wrong usage is reported without a call to etcd, and that valid
// usage calls etcd.
func TestLimitUsage(t *testing.T) {
	const asked = "no etcd can be reached: 127.0.0.1:1: connection refused; start it, or name its client addresses with --etcd"
	for args, want := range map[string]string{
		"":                                    `expected one of "get", "set", "watch", "delete"`,
		"get":                                 asked,
		"get mail --json":                     asked,
		"set a.B_c:d-9 10/1m":                 asked,
		"set mail 10/1m --balance even":       asked,
		"set mail 0/s --allow-zero --wait 0s": asked,
		"watch mail":                          asked,
		"delete mail --if-revision 17":        asked,
		"get --admin 127.0.0.1:9902":          "--admin is the address of an instance, and limits are in etcd: leave it out, and name etcd with --etcd",
		"get ../x":                            `provider "../x": a name has 1 to 128 letters, digits and . _ : -`,
		"watch ü":                             `provider "ü": a name has`,
		"delete mail/limit":                   `provider "mail/limit": a name has`,
		"watch":                               "no provider is given: write its name after the command, like mail",
		"set mail":                            "no limit is given: write it after the provider, like 50000/s",
		"set mail/x 1/s":                      `provider "mail/x": a name has`,
		"set mail 5":                          `limit "5" has no period: limit must be like 500/2s`,
		"set mail 0/s":                        "limit 0/1s stops all calls to mail: add --allow-zero to confirm",
		"set mail 1/us":                       "limit 1/1µs has a window out of range: use 1ms to 366d",
		"set mail 1/367d":                     "limit 1/367d has a window out of range",
		"set mail 1099511627777/s":            "limit 1099511627777/1s is too great: use 0 to 1099511627776",
		"set mail 5/s --balance fair":         `--balance is "fair": write even`,
		"set mail 5/s --balance demand": "use package client/lease in place of pace/etcd; headgate ctl limit sets the capacity of the resource too: " +
			"see docs/pacing.md, A rate that follows demand",
		"set mail 5/s --if-revision=-1":                    "--if-revision is -1: write the revision that headgate ctl limit get shows",
		"delete mail --if-revision=-1":                     "--if-revision is -1",
		"set mail 5/s --wait=-1s":                          "--wait is -1s: write how long to wait",
		"get --timeout 0s":                                 "--timeout is 0s",
		"get --etcd nonsense":                              `--etcd "nonsense" is not an address: write host:port, like 127.0.0.1:2379, or https://host:port`,
		"get --etcd ftp://127.0.0.1:1":                     "is not an address",
		"get --etcd 127.0.0.1:0":                           "is not an address",
		"get --etcd 127.0.0.1:65536":                       "is not an address",
		"get --etcd :2379":                                 "is not an address",
		"get --etcd http://127.0.0.1:1/x":                  "is not an address",
		"get --etcd http://a@b:1":                          "is not an address",
		"get --etcd http://127.0.0.1:1/":                   asked,
		"get --etcd https://a:1,b:1":                       "addresses with TLS and without",
		"get --etcd-cert x":                                "--etcd-cert and --etcd-key go together",
		"get --etcd-key x":                                 "--etcd-cert and --etcd-key go together",
		"get --etcd-user x":                                "--etcd-user needs a password: name its file with --etcd-password-file",
		"get --etcd-password-file x":                       "--etcd-password-file needs a user",
		"get --etcd http://a:1 --etcd-ca x":                "--etcd http://a:1 does not use TLS",
		"get --etcd-ca /nowhere":                           "--etcd-ca: open /nowhere: no such file",
		"get --etcd-cert /no --etcd-key /no":               "--etcd-cert: open /no: no such file",
		"get --etcd-user x --etcd-password-file /no":       "--etcd-password-file: open /no: no such file",
		"get --prefix " + strings.Repeat("x", 257):         "(257 bytes) is invalid: write a prefix of at most 256 bytes that ends with /, like /headgate/pace/",
		"get --prefix /pace":                               `--prefix "/pace" (5 bytes) is invalid: write a prefix of at most 256 bytes that ends with /`,
		"set mail 7/1500500ns":                             `has the unknown unit "ns"`,
		"set mail 7/1.005ms":                               asked,
		"set mail 7/1.0000005s":                            "limit 7/1.0000005s has a window that is not a multiple of 1µs",
		"get --etcd " + strings.Repeat("a:1,", 32) + "a:1": "--etcd has 33 addresses: write 1 to 32 addresses",
	} {
		t.Setenv("HEADGATE_ETCD", nowhere)
		t.Setenv("HEADGATE_ADMIN_LISTEN", nowhere) // This variable is for other commands. These commands must ignore it.
		var stderr bytes.Buffer
		status, wanted := run(append([]string{"ctl", "limit"}, strings.Fields(args)...), new(bytes.Buffer), &stderr), exitUsage
		if want == asked {
			wanted = exitFailed
		}
		if status != wanted || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: status %d, want %d and %q: %s", args, status, wanted, want, stderr.String())
		}
	}
}

// TestLimitHelp checks that the help names the defaults of etcd and hides the address of an
// instance. The help of other commands must still show that address.
func TestLimitHelp(t *testing.T) {
	for args, admin := range map[string]bool{"ctl limit --help": false, "ctl limit set --help": false, "ctl shares --help": true, "ctl --help": true} {
		var stdout bytes.Buffer
		if status := run(strings.Fields(args), &stdout, new(bytes.Buffer)); status != exitOK {
			t.Errorf("%s: status %d", args, status)
		}
		if strings.Contains(stdout.String(), "--admin") != admin || !strings.Contains(stdout.String(), "--json") {
			t.Errorf("%s prints\n%s", args, stdout.String())
		}
		text := strings.Join(strings.Fields(stdout.String()), " ")
		if strings.HasPrefix(args, "ctl limit") && !strings.Contains(text, "--prefix=\""+etcd.DefaultPrefix+"\" ") {
			t.Errorf("%s does not name the default prefix:\n%s", args, stdout.String())
		}
	}
}
