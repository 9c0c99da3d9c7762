package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/testkit/race"
)

// changesElsewhere are the beginnings of the fields that testdata/reload does not change, and why.
func changesElsewhere() map[string]string {
	return map[string]string{
		"version":                   "there is one version",
		"identity.region_db":        "databases are made by the tests of config/internal/region",
		"rules[].overrides.":        "read as the limits of the rule",
		"throttle.classes[].match.": "read as the match of a rule",
		"customers.*.limits.":       "read as the quotas of a plan",
		"customers.*.raise.limits.": "read as the quotas of a plan",
	}
}

// position is the place of an entry in a list.
var position = regexp.MustCompile(`\[\d+\]`)

var change = regexp.MustCompile(`«([^|»]*)\|([^»]*)»`)

// TestReloadClasses changes each declared field of the documents in testdata/reload alone, reloads, and compares what happens with the
// declared class: a field that is taken waits for nothing, one of class restart is named, and one of class refused fails the
// reload. Every declared field has a change.
func TestReloadClasses(t *testing.T) {
	t.Parallel()
	declared, err := config.Declarations()
	if err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("testdata/reload/*.yaml")
	if err != nil || len(documents) < 10 {
		t.Fatal(documents, err)
	}
	var changed sync.Map
	for _, path := range documents {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			d := &reloaded{text: strings.ReplaceAll(string(text), "DIR", filesOfReloads(t)), declared: declared, changed: &changed}
			d.run(t)
		})
	}
	t.Cleanup(func() { // after all documents
		for path := range declared {
			if _, found := changed.Load(path); !found && !startsWithAny(path, changesElsewhere()) {
				t.Errorf("no document of testdata/reload changes %s", path)
			}
		}
	})
}

func startsWithAny(path string, prefixes map[string]string) bool {
	for prefix := range prefixes {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// reloaded is a document whose fields are changed one at a time.
type reloaded struct {
	text     string
	declared map[string]field.Field
	changed  *sync.Map // the paths of the changed fields; all documents share it
}

// with gives the document with the second value of change n; -1 changes nothing.
func (d *reloaded) with(n int) string {
	at := -1
	return change.ReplaceAllStringFunc(d.text, func(both string) string {
		at++
		values := change.FindStringSubmatch(both)
		if at == n {
			return values[2]
		}
		return values[1]
	})
}

func (d *reloaded) run(t *testing.T) {
	t.Helper()
	first, err := config.LoadText("test.yaml", []byte(d.with(-1)))
	if err != nil {
		t.Fatal(err)
	}
	next := first
	i, err := Start(t.Context(), Options{
		Config: first, Load: func() (*config.Config, error) { return next, nil }, Server: strings.Contains(d.text, "\nserver:") && !strings.Contains(d.text, "\nproxy:"),
		Log: slog.New(slog.DiscardHandler), Level: new(slog.LevelVar),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Stop() }()
	for n := range change.FindAllString(d.text, -1) {
		paths := d.pathsOf(t, n)
		path := paths[0]
		for _, p := range paths {
			d.changed.Store(p, nil)
			if d.declared[p].Reload != d.declared[path].Reload {
				t.Errorf("the change of %q has fields of two classes", paths)
			}
		}
		if race.On && n%16 != 0 { // A reload takes long there.
			continue
		}
		if next, err = config.LoadText("test.yaml", []byte(d.with(n))); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		failed := i.Reload()
		waiting := i.Status().Reload.Waiting
		named := !i.serves(path) || len(waiting) > 0 && !slices.ContainsFunc(waiting, func(setting string) bool {
			setting = position.ReplaceAllString(setting, "[]")
			return !strings.HasPrefix(setting, path) && !strings.HasPrefix(path, setting)
		})
		switch class := d.declared[path].Reload; {
		case class == field.Taken && (failed != nil || len(waiting) > 0),
			class == field.Restart && (failed != nil || !named),
			class == field.Refused && (failed == nil || len(waiting) > 0):
			t.Errorf("%s is declared as %s: the reload ends with %v, and %q wait for a restart", path, class, failed, waiting)
		}
		next = first
		if err := i.Reload(); err != nil || len(i.Status().Reload.Waiting) > 0 {
			t.Fatalf("%s changed back: %v, %q wait", path, err, i.Status().Reload.Waiting)
		}
	}
}

// serves reports whether the command of the instance uses a setting.
func (i *Instance) serves(path string) bool { return !strings.HasPrefix(path, i.otherCommand()+".") }

// pathsOf gives the declared paths of a change.
func (d *reloaded) pathsOf(t *testing.T, n int) (paths []string) {
	t.Helper()
	parsed := func(n int) (root any) {
		if err := yaml.Load([]byte(d.with(n)), &root); err != nil {
			t.Fatalf("%v\n%s", err, d.with(n))
		}
		return root
	}
	for _, path := range differences(parsed(-1), parsed(n), nil, nil) {
		for ; len(path) > 0; path = path[:len(path)-1] {
			found := ""
			for name := range d.declared {
				if matches(name, path) {
					found = name
				}
			}
			if found != "" {
				paths = append(paths, found)
				break
			}
		}
	}
	if len(paths) == 0 {
		t.Fatalf("change %d has no declared path: %s", n, change.FindAllString(d.text, -1)[n])
	}
	return paths
}

// differences appends the paths of the differences of two trees: names of fields, and [] for entries of lists.
func differences(a, b any, at []string, all [][]string) [][]string {
	switch one := a.(type) {
	case map[string]any:
		if other, same := b.(map[string]any); same {
			for _, name := range slices.Compact(slices.Sorted(keysOf(one, other))) {
				if !reflect.DeepEqual(one[name], other[name]) {
					all = differences(one[name], other[name], append(slices.Clone(at), name), all)
				}
			}
			return all
		}
	case []any:
		if other, same := b.([]any); same && len(one) == len(other) {
			for n := range one {
				if !reflect.DeepEqual(one[n], other[n]) {
					all = differences(one[n], other[n], append(slices.Clone(at), "[]"), all)
				}
			}
			return all
		}
	}
	return append(all, at)
}

func keysOf(maps ...map[string]any) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, m := range maps {
			for name := range m {
				if !yield(name) {
					return
				}
			}
		}
	}
}

// matches reports whether a declared path is that of the names.
func matches(declared string, names []string) bool {
	parts := strings.Split(strings.ReplaceAll(declared, "[]", ".[]"), ".")
	return slices.EqualFunc(parts, names, func(part, name string) bool { return part == name || part == "*" && name != "[]" })
}

// filesOfReloads makes the files that the documents name: two of each kind.
func filesOfReloads(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for n, name := range []string{"a", "b"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		cert := &x509.Certificate{
			SerialNumber: big.NewInt(int64(n + 1)), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name + ".example"},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		}
		certificate, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
		private, fault := x509.MarshalPKCS8PrivateKey(key)
		public, wrong := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if err := errors.Join(err, fault, wrong); err != nil {
			t.Fatal(err)
		}
		block := func(kind string, bytes []byte) string {
			return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
		}
		for suffix, text := range map[string]string{
			"crt": block("CERTIFICATE", certificate), "key": block("PRIVATE KEY", private), "jwks": block("PUBLIC KEY", public),
			"secret": strings.Repeat(name, 32) + "\n", "token": name + "\n", "headers": "X-A: " + name + "\n",
			"networks": fmt.Sprintf("192.0.2.%d\n", n),
			"callers":  fmt.Sprintf("callers: [{name: %s, tokens: ['sha256:%064d'], scopes: [read]}]\n", name, n),
		} {
			for _, copied := range []string{".", "2."} {
				if err := os.WriteFile(filepath.Join(folder, name+copied+suffix), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, sub := range []string{"j", "l"} {
			if err := os.Mkdir(filepath.Join(folder, sub+name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}
