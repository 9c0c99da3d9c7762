package fileproxy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Environment returns the environment of a go command that reads the workspace's modules from the folder proxy, and other
// modules from the module cache or the proxy of this machine. The command has a module cache of its own, because a release
// that is tried has the version of the release that follows. Packages are built with -trimpath, so that go build finds the
// packages of other modules in its cache, whatever the folder of the modules. remove removes the cache of modules.
func Environment(ctx context.Context, proxy string) (env []string, remove func(), err error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go env: %w", err)
	}
	cache, from, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	absolute, err := filepath.Abs(proxy)
	if err != nil {
		return nil, nil, err
	}
	own, err := os.MkdirTemp("", "modules")
	if err != nil {
		return nil, nil, err
	}
	return append(os.Environ(),
		"GOWORK=off", "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOMODCACHE="+own, "GOTOOLCHAIN=local", "GONOSUMDB="+Root+","+Root+"/*",
		"GOPROXY=file://"+filepath.ToSlash(absolute)+",file://"+filepath.ToSlash(filepath.Join(cache, "cache", "download"))+","+from,
	), func() { _ = os.RemoveAll(own) }, nil
}
