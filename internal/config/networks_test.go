package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// networksText is a configuration with a file of networks at two places.
const networksText = `version: 1
exempt: [{networks_file: partners.txt, not: {path: /admin}}]
rules:
  - {name: a, match: {addresses: [192.0.2.0/24], networks_file: partners.txt}, key: [ip], limits: [1/s]}
  - {name: b, match: {not: {networks_file: partners.txt}}, exempt: [{query: {format: csv}}], key: [ip], limits: [1/s]}
`

func networksFolder(t *testing.T, networks string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"headgate.yaml": networksText, "partners.txt": networks} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestNetworksFile: matches get the networks of the file, which they share, and the file is followed.
func TestNetworksFile(t *testing.T) {
	folder := networksFolder(t, "# partners\n10.0.0.0/8\n\n 2001:db8::/32 # of the second\n203.0.113.7\n")
	path := filepath.Join(folder, "headgate.yaml")
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "[192.0.2.0/24 10.0.0.0/8 2001:db8::/32 203.0.113.7/32]"
	not, exempt := c.Rules[1].Match.Not.Addresses, c.Exempt[0].Addresses
	if got := fmt.Sprint(c.Rules[0].Match.Addresses); got != want || len(not) != 3 || &not[0] != &exempt[0] {
		t.Errorf("got %s and %v, want %s", got, not, want)
	}
	if partners := filepath.Join(folder, "partners.txt"); !slices.Contains(c.Files(), partners) || !slices.Contains(filesNamedBy(path), partners) {
		t.Errorf("the file is not followed: %v, %v", c.Files(), filesNamedBy(path))
	}
	if _, err := c.GuardConfig(nil, nil); err != nil {
		t.Error(err)
	}
	parsed, err := Parse("headgate.yaml", []byte(networksText))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parsed.GuardConfig(nil, nil); err == nil || !strings.Contains(err.Error(), "Parse does not read networks_file") {
		t.Errorf("a configuration without its networks makes a guard: %v", err)
	}
}

// TestFaultsOfNetworksFiles: a fault names the field, the file and the line.
func TestFaultsOfNetworksFiles(t *testing.T) {
	many := strings.Repeat("10.0.0.1\n", maxFileNetworks+1)
	for networks, want := range map[string]string{
		"10.0.0.0/8\nx\n":            `line 2: "x" is not an address or a network: write it like`,
		"10.1.0.0/8":                 `line 1: "10.1.0.0/8" has bits beyond its /8: write 10.0.0.0/8, or 10.1.0.0 for one address`,
		"::ffff:1.2.3.4":             `line 1: "::ffff:1.2.3.4" is IPv4 in IPv6`,
		"# none\n":                   "the file has no network: write one a line, like 10.0.0.0/8",
		many:                         "line 10001 is a network more than 10000: use wider networks",
		strings.Repeat("#\n", 1<<20): "the file has more than 1MiB",
	} {
		folder := networksFolder(t, networks)
		_, err := Load(filepath.Join(folder, "headgate.yaml"))
		if text := fmt.Sprint(err); !strings.Contains(text, want) || !strings.Contains(text, "partners.txt") || !strings.Contains(text, "headgate.yaml:2:") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	folder := networksFolder(t, "10.0.0.0/8")
	if err := os.Remove(filepath.Join(folder, "partners.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(filepath.Join(folder, "headgate.yaml")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file: %v", err)
	}
	known := newNetworkFiles(filepath.Join(folder, "headgate.yaml")).known()
	if _, err := known.list("/etc/passwd"); err == nil || !strings.Contains(err.Error(), "write the networks as addresses") {
		t.Errorf("a rule of a source reads a file: %v", err)
	}
}

// TestFaultsOfExceptions: the faults of not and exempt have their places.
func TestFaultsOfExceptions(t *testing.T) {
	for text, want := range map[string]string{
		"exempt: [{}]\nrules: []":                                                           `exempt[0]: has no field, so that nothing would be decided`,
		"exempt: [{path: a}]\nrules: []":                                                    `exempt[0].path: "a" does not begin with /`,
		"exempt: [{not: {hosts: [a/b]}}]\nrules: []":                                        `exempt[0].not.hosts[0]`,
		"rules: [{name: a, match: {not: {}}, key: [ip], limits: [1/s]}]":                    `rules[0].match.not: has no field`,
		"rules: [{name: a, match: {not: {not: {path: /a}}}, key: [ip], limits: [1/s]}]":     `rules[0].match.not: field "not" is not known`,
		"rules: [{name: a, exempt: [{addresses: [10.1.0.0/8]}], key: [ip], limits: [1/s]}]": `rules[0].exempt[0].addresses[0]`,
		"rules: [{name: a, exempt: {path: /a}, key: [ip], limits: [1/s]}]":                  `rules[0].exempt`,
	} {
		_, err := Parse("f", []byte("version: 1\n"+text+"\n"))
		if faults, ok := err.(Faults); !ok || !slices.ContainsFunc(faults, func(f Fault) bool { return strings.Contains(f.Path+": "+f.Problem, want) }) { //nolint:errorlint // because Parse gives it.
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	c, err := Parse("f", []byte("version: 1\nrules: [{name: a, match: {addresses: [10.0.0.0/8, \"::1\"]}, key: [ip], limits: [1/s]}]\n"))
	if want := netip.MustParsePrefix("::1/128"); err != nil || c.Rules[0].Match.Addresses[1] != want {
		t.Errorf("got %v, %v", c, err)
	}
}
