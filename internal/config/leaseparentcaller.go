package config

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/headgate/headgate/internal/readfile"
)

// callers checks that the parent knows the child, and that the child may do what it does.
func (p *leasePair) callers(files bool) error {
	auth, token := p.parent.Server.GRPC.Auth, p.child.Lease.TokenFile
	switch {
	case auth == 0:
		if p.child.GivesLeases() {
			p.parent.fault("server.grpc", "no client has a name, so none may be a server below this one",
				"write auth: token, and mark the caller of "+p.child.name()+" with server: true in lease.holders")
		}
	case auth == AuthToken && token == "":
		p.child.fault("lease.token_file", "is missing, and "+p.parent.name()+" refuses clients without a token",
			"write the file with the token of one of its callers")
	case auth&AuthToken != 0 && token != "" && files:
		return p.callerOfToken()
	case p.child.GivesLeases() && !p.parent.Lease.servers():
		p.parent.fault("lease.holders", "has no caller with server: true, so no server may be below this one",
			"add the caller of "+p.child.name()+", like {leaf-eu: {server: true}}")
	}
	return nil
}

// callerOfToken checks the caller of the token of the child.
func (p *leasePair) callerOfToken() error {
	const most = 4096
	token, err := readfile.Line(p.child.Lease.TokenFile, most, "token")
	if err != nil {
		return p.child.Located(&FileError{"lease.token_file", err})
	}
	all, err := p.parent.AllCallers()
	if err != nil {
		return p.parent.Located(err)
	}
	digest := sha256.Sum256([]byte(token))
	at := slices.IndexFunc(all, func(c Caller) bool { return slices.Contains(c.Tokens, digest) })
	switch {
	case at < 0:
		p.child.fault("lease.token_file", "no caller of "+p.parent.name()+" has this token",
			"use the token of a caller, or make one with headgate token NAME --scope lease")
		return nil
	case all[at].Scopes&ScopeLease == 0:
		place := "server.callers_file"
		if at < len(p.parent.Server.Callers) {
			place = fmt.Sprintf("server.callers[%d].scopes", at)
		}
		p.parent.fault(place, "caller "+quote(all[at].Name)+" of "+p.child.name()+" does not have the scope lease", "add it to its scopes")
	}
	if name := all[at].Name; p.child.GivesLeases() && !p.parent.Lease.Holders[name].Server {
		p.parent.fault("lease.holders."+name, "caller "+quote(name)+" of "+p.child.name()+" may not be a server",
			"write "+name+": {server: true} in lease.holders")
	}
	return nil
}
