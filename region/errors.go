// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
)

var (
	// ErrUnknownPeer means that the Snapshot has no peer of this name. Correct the name, or add the peer to the
	// source of the Directory.
	ErrUnknownPeer = errors.New("unknown peer")
	// ErrUnknownRegion means that no peer serves the region. Correct the region, or let a peer serve it (with a
	// RegionClaim, for example).
	ErrUnknownRegion = errors.New("unknown region")
	// ErrUnavailable means that the peer is known but not reachable. The outcome of a write may be unknown. Retry
	// reads later; read the object before you repeat a write. Diagnose has the cause.
	ErrUnavailable = errors.New("peer is unavailable")
	// ErrOtherCluster means that credentials reach another cluster than the peer's: another than Peer.UID names, or
	// than earlier credentials reached. Correct the credentials, or give the new cluster a new peer name.
	ErrOtherCluster = errors.New("credentials reach another cluster")
	// ErrIdentityUnknown means that the credentials may not read the UID of the peer's cluster. A Conn does not rotate
	// to such credentials: grant get of the namespace kube-system, as "atollctl rbac" prints it.
	ErrIdentityUnknown = errors.New("identity unknown: grant get namespaces/kube-system")
	// ErrSameCluster means that two peers reach one cluster. Configure the cluster under one name.
	ErrSameCluster = errors.New("two peers reach one cluster")
	// ErrNoPeers means that a call over all peers found no peer. Wait until the Directory has read its source, or
	// add peers to the source.
	ErrNoPeers = errors.New("no peers are known")
)

// Error is a failed operation with its peer and region. Unwrap returns the cause, so apierrors.IsNotFound and
// errors.Is work: decide by the cause, and show Peer and Region to a person.
type Error struct {
	Peer   PeerName // empty if no peer was reached
	Region Key      // zero if the operation was not about a region
	Op     string
	Err    error
}

// Error is one line: peer, region, operation, cause.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Peer != "" {
		fmt.Fprintf(&b, "peer %s: ", e.Peer)
	}
	if e.Region != (Key{}) {
		fmt.Fprintf(&b, "region %s: ", e.Region)
	}
	if e.Op != "" {
		fmt.Fprintf(&b, "%s: ", e.Op)
	}
	fmt.Fprint(&b, e.Err)
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the cause is a timeout, as net.Error does. It lets url.Error and client-go recognize a
// timeout.
func (e *Error) Timeout() bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.Err)
	return ok && t.Timeout()
}

// cause removes the outermost *Error of err, for a caller that names peer and operation itself.
func cause(err error) error {
	if e, ok := err.(*Error); ok { //nolint:errorlint // only the outermost
		return e.Err
	}
	return err
}

// PartialError is the failure of a call over many peers: one line, members sorted by peer. Use the results of the
// other peers, or repeat the call. PartialError has no Unwrap, so apierrors.IsNotFound is false even if one peer
// returned NotFound. WrappedErrors has the error of each peer.
type PartialError struct {
	op      string
	asked   int
	members *multierror.Error
}

// newPartialError makes a PartialError of members; nil if members is empty.
func newPartialError(op string, asked int, members []*Error) *PartialError {
	if len(members) == 0 {
		return nil
	}
	members = slices.Clone(members)
	slices.SortStableFunc(members, func(a, b *Error) int { return cmp.Compare(a.Peer, b.Peer) })
	e := &PartialError{op: op, asked: asked, members: &multierror.Error{}}
	for _, m := range members {
		e.members = multierror.Append(e.members, m)
	}
	e.members.ErrorFormat = e.line
	return e
}

// Error lists every member in one line.
func (e *PartialError) Error() string { return e.members.Error() }

// WrappedErrors returns the members, sorted by peer; each is a *Error. hashicorp/go-multierror's Error has the same
// method.
func (e *PartialError) WrappedErrors() []error { return slices.Clone(e.members.WrappedErrors()) }

func (e *PartialError) line(members []error) string {
	texts := make([]string, len(members))
	for i, m := range members {
		texts[i] = m.Error()
		if member, ok := errors.AsType[*Error](m); ok && member.Op == e.op {
			texts[i] = (&Error{Peer: member.Peer, Region: member.Region, Err: member.Err}).Error()
		}
	}
	return fmt.Sprintf("%s: %d of %d peers failed: %s", e.op, len(members), e.asked, strings.Join(texts, "; "))
}
