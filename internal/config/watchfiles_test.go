package config

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestFilesNamedBy reads the file names from texts with other faults.
func TestFilesNamedBy(t *testing.T) {
	dir := folder(t, map[string]string{
		"good.yaml":   "version: 1\nidentity: {region_db: a.mmdb, jwt: {keys: /k}}\nrules: []\n",
		"faulty.yaml": "identity: {region_db: a.mmdb, jwt: {keys: ''}}\nproxy: {tls: {cert: b}}\nlog: {access_file: c}\n",
		"broken.yaml": "identity: {region_db: a.mmdb\n",
	})
	for name, want := range map[string][]string{
		"good.yaml": {filepath.Join(dir, "a.mmdb"), "/k"}, "faulty.yaml": {filepath.Join(dir, "a.mmdb")}, "broken.yaml": nil, "none.yaml": nil,
	} {
		if got := filesNamedBy(filepath.Join(dir, name)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
