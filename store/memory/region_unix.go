//go:build (darwin || freebsd || netbsd || openbsd || dragonfly) && !race

package memory

const lazily = 0

func advise([]byte) {}
