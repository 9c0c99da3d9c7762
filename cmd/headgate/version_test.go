package main

import (
	"runtime/debug"
	"testing"
)

// TestBuilt: the version of the linker has precedence over that of the module.
func TestBuilt(t *testing.T) {
	revision := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef0123"}}
	for name, c := range map[string]struct {
		version, commit, module string
		settings                []debug.BuildSetting
		wantVersion, wantCommit string
	}{
		"make build":                 {"v0.2.0", "abc", "v0.1.0", revision, "v0.2.0", "abc"},
		"go install of a version":    {"dev", "unknown", "v0.2.0", nil, "v0.2.0", "unknown"},
		"go build in a repository":   {"dev", "unknown", "(devel)", revision, "dev", "0123456789ab"},
		"go build outside of one":    {"dev", "unknown", "", nil, "dev", "unknown"},
		"a repository of short ones": {"dev", "unknown", "", []debug.BuildSetting{{Key: "vcs.revision", Value: "01"}}, "dev", "01"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: c.module}, Settings: c.settings}
		if v, commit := built(c.version, c.commit, info); v != c.wantVersion || commit != c.wantCommit {
			t.Errorf("%s: got %q, %q, want %q, %q", name, v, commit, c.wantVersion, c.wantCommit)
		}
	}
}
