package listen

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
)

// Advise adds to the error of a socket that could not be opened what to do, where the cause is known.
func Advise(err error) error {
	advice := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "stop what listens there, or choose another address; " + holder(err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		advice = "this machine does not have the address: write one that ip address shows, or :PORT for all of them"
	case errors.Is(err, fs.ErrPermission):
		advice = permission(err)
	case errors.Is(err, fs.ErrNotExist):
		advice = "make the folder, or choose a path in another one"
	case errors.Is(err, syscall.EROFS):
		advice = "choose a path on a file system that is mounted for writing"
	case errors.Is(err, syscall.EAFNOSUPPORT):
		advice = "this machine does not speak this version of IP: write an address of the other one"
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, advice)
}

// holder says how to see which process has an address.
func holder(err error) string {
	if op, found := errors.AsType[*net.OpError](err); found {
		if at, isTCP := op.Addr.(*net.TCPAddr); isTCP {
			return fmt.Sprintf("ss -ltnp 'sport = :%d' shows the process", at.Port)
		}
		if at, isUnix := op.Addr.(*net.UnixAddr); isUnix {
			return "ss -lxp src " + at.Name + " shows the process"
		}
	}
	return "ss -ltnp shows the process"
}

// permission tells a port that takes a privilege from a folder.
func permission(err error) string {
	op, found := errors.AsType[*net.OpError](err)
	if found {
		if at, isTCP := op.Addr.(*net.TCPAddr); isTCP && at.Port < 1024 {
			return "ports below 1024 take a privilege: use one from 1024 on, or grant CAP_NET_BIND_SERVICE"
		}
	}
	return "let the user of the process write to the folder"
}

// advise is Advise for this package's own errors.
func advise(err error) error { return fmt.Errorf("listen: %w", Advise(err)) }
