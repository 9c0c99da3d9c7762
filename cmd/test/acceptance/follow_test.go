package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// showsLimit waits until rule client has a limit.
func showsLimit(t *testing.T, i *instance, limit string) {
	t.Helper()
	eventually(t, "limit "+limit+" to take effect", func() bool {
		return metric(t, i, `headgate_rule_info{algorithm="sliding_log",limits="`+limit+`",mode="enforce",rule="client"}`) == 1
	})
}

// TestConfigurationIsFollowed: a changed file takes effect automatically, by each way of
// changing it, and several times.
func TestConfigurationIsFollowed(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	t.Cleanup(behind.Close)
	text := func(limit string) []byte { return fmt.Appendf(nil, reloadConfiguration, limit, behind.URL) }
	for name, change := range map[string]func(t *testing.T, path string, content []byte){
		"a save in place": func(t *testing.T, path string, content []byte) {
			t.Helper()
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"an editor's rename": replace,
		"an editor that moves the old file away": func(t *testing.T, path string, content []byte) {
			t.Helper()
			if err := os.Rename(path, path+"~"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := launch(t, file(t, string(text("3/1h"))))
			walk(t, "http://"+i.Proxy, []step{{path: "/v1/x", want: 200}})
			for _, limit := range []string{"4/1h", "5/1h"} {
				change(t, i.path, text(limit))
				showsLimit(t, i, limit)
			}
			change(t, i.path, []byte("rules: nonsense\n"))
			eventually(t, "the fault to be told", func() bool { return metric(t, i, "headgate_config_last_reload_successful") == 0 })
			change(t, i.path, text("2/1h"))
			showsLimit(t, i, "2/1h")
			walk(t, "http://"+i.Proxy, []step{{path: "/v1/x", want: 200}, {path: "/v1/x", want: 429}})
		})
	}
	t.Run("Kubernetes swaps ..data", func(t *testing.T) {
		t.Parallel()
		volume := t.TempDir()
		mount := func(version string, content []byte) {
			folder := filepath.Join(volume, version)
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "headgate.yaml"), content, 0o600); err != nil {
				t.Fatal(err)
			}
			was, _ := os.Readlink(filepath.Join(volume, "..data"))
			if err := os.Symlink(version, filepath.Join(volume, "..data_tmp")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(volume, "..data_tmp"), filepath.Join(volume, "..data")); err != nil {
				t.Fatal(err)
			}
			if was != "" {
				if err := os.RemoveAll(filepath.Join(volume, was)); err != nil {
					t.Fatal(err)
				}
			}
		}
		mount("..2026_11_21_1", text("3/1h"))
		path := filepath.Join(volume, "headgate.yaml")
		if err := os.Symlink(filepath.Join("..data", "headgate.yaml"), path); err != nil {
			t.Fatal(err)
		}
		i := launch(t, path)
		walk(t, "http://"+i.Proxy, []step{{path: "/v1/x", want: 200}})
		for n, limit := range []string{"4/1h", "5/1h"} {
			mount(fmt.Sprintf("..2026_11_21_%d", n+2), text(limit))
			showsLimit(t, i, limit)
		}
	})
}

// TestChangeAtTheStartIsNoticed: the file changes after the proxy has read it and just before
// the proxy serves. The change takes effect.
func TestChangeAtTheStartIsNoticed(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := launch(t, file(t, fmt.Sprintf(reloadConfiguration, "3/1h", behind.URL)))
	replace(t, i.path, fmt.Appendf(nil, reloadConfiguration, "4/1h", behind.URL))
	showsLimit(t, i, "4/1h")
}

// TestNamedFilesAreFollowed: files that the configuration names are followed too.
func TestNamedFilesAreFollowed(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	database := filepath.Join(t.TempDir(), "country.mmdb")
	replace(t, database, countries(t, map[string]string{"192.0.2.0/24": "NL"}))
	i := start(t, strings.Replace(regionConfiguration, "FILE", database, 1), behind.URL)
	walk(t, "http://"+i.Proxy, []step{
		{args: with("X-Forwarded-For: 192.0.2.1"), want: 200}, {args: with("X-Forwarded-For: 192.0.2.1"), want: 429},
	})
	replace(t, database, countries(t, map[string]string{"192.0.2.0/24": "BE"}))
	eventually(t, "the database to be read again", func() bool {
		answer := ask(t, append(with("X-Forwarded-For: 192.0.2.1"), "http://"+i.Proxy)...)
		return answer.status == http.StatusOK
	})
}
