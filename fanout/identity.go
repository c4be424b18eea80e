// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// namedCluster is a cluster under the name of a peer.
type namedCluster struct {
	peer    region.PeerName
	cluster types.UID
}

// Property is a property that identifies the cluster of a peer.
type Property string

const (
	// PropertyName is the name of the peer, as the PeerSet in its cluster has it.
	PropertyName = Property(protocol.MismatchName)
	// PropertyUID is the UID of the cluster's namespace kube-system.
	PropertyUID = Property(protocol.MismatchUID)
	// PropertyRing is the ID of the ring, as the PeerSet in its cluster has it.
	PropertyRing = Property(protocol.MismatchRing)
)

// WrongPeerError means that the cluster behind a peer's credentials is not the one that the ring
// knows under the peer's name. The peer counts as unreachable: no object there is read or written.
// Correct the peer's credentials; if Tied is set, those of the wrong peer. errors.As finds it; it
// wraps ErrWrongPeer, or ErrOtherRing if the ring differs.
type WrongPeerError struct {
	Peer     region.PeerName
	Property Property
	Found    string // the value of Property in the cluster
	Want     string // the value of Property that the cluster must have
	// By are the other peers that know the value in Want. By is empty if Want comes from the
	// peer's own PeerSet, or if Want is the ring that this process already knew.
	By []region.PeerName
	// Tied is set if as many peers know the value in Found as the value in Want: nothing decides
	// which of these peers are right, and none of them is trusted.
	Tied bool
}

// Error names the peer, the wanted and the found property, and the remedy.
func (e *WrongPeerError) Error() string {
	by := make([]string, len(e.By))
	for i, p := range e.By {
		by[i] = string(p)
	}
	knows := strings.Join(by, ", ")
	var text string
	switch {
	case e.Property == PropertyName:
		text = fmt.Sprintf("the cluster behind peer %s calls itself %s", e.Peer, e.Found)
	case e.Property == PropertyRing && knows == "":
		text = fmt.Sprintf("the cluster behind peer %s belongs to ring %s, and this ring is %s", e.Peer, e.Found, e.Want)
	case e.Property == PropertyRing:
		text = fmt.Sprintf("the cluster behind peer %s belongs to ring %s, and %s to ring %s", e.Peer, e.Found, knows, e.Want)
	case knows == "":
		text = fmt.Sprintf("kube-system of the cluster behind peer %s has UID %s, and the PeerSet there was written in the cluster %s", e.Peer, e.Found, e.Want)
	default:
		text = fmt.Sprintf("kube-system of the cluster behind peer %s has UID %s, and %s know the peer as the cluster %s", e.Peer, e.Found, knows, e.Want)
	}
	text = e.Unwrap().Error() + ": " + text
	if e.Tied {
		return text + ": no other peer decides which of them is right, and none is believed: correct the credentials of the wrong one"
	}
	return text + ": correct the peer's credentials"
}

// Unwrap returns ErrWrongPeer, or ErrOtherRing if the ring differs.
func (e *WrongPeerError) Unwrap() error {
	if e.Property == PropertyRing {
		return ErrOtherRing
	}
	return ErrWrongPeer
}

// Is reports that the error is region.ErrOtherCluster, which gives it the cause
// region.CauseOtherCluster.
func (e *WrongPeerError) Is(target error) bool { return target == region.ErrOtherCluster } //nolint:errorlint // a sentinel

// ReturnedError means that a peer's store was restored from an older state: objects that the peer
// holds or lacks prove nothing about the ring until Comeback has succeeded. Until then the peer
// counts as unreachable. Call Comeback for the peer. errors.As finds it; it wraps ErrReturned.
type ReturnedError struct {
	Peer  region.PeerName
	Epoch int64 // epoch of its PeerSet
	Noted int64 // the higher epoch that the peers in By have noted
	By    []region.PeerName
}

// Error names the peer, the two epochs, and the remedy.
func (e *ReturnedError) Error() string {
	by := make([]string, len(e.By))
	for i, p := range e.By {
		by[i] = string(p)
	}
	return fmt.Sprintf("%v: the PeerSet of peer %s is at epoch %d, and %s noted epoch %d there: bring it back (atollctl peer comeback %s)",
		ErrReturned, e.Peer, e.Epoch, strings.Join(by, ", "), e.Noted, e.Peer)
}

// Unwrap returns ErrReturned.
func (e *ReturnedError) Unwrap() error { return ErrReturned }

// returningKey is the context key of the restored peer that a call readmits.
type returningKey struct{}

// returning returns a context whose calls trust peer although it was restored from an older state:
// these calls readmit the peer (see Comeback).
func returning(ctx context.Context, peer region.PeerName) context.Context {
	return context.WithValue(ctx, returningKey{}, peer)
}

// excused returns true if err is the *ReturnedError of a peer, and ctx is the context of calls that
// readmit this peer (see returning).
func excused(ctx context.Context, err error) bool {
	returned, ok := errors.AsType[*ReturnedError](err)
	peer, _ := ctx.Value(returningKey{}).(region.PeerName)
	return ok && returned.Peer == peer
}

func wrongPeer(peer region.PeerName, i protocol.Identification) error {
	if i.Standing == protocol.Returned {
		e := &ReturnedError{Peer: peer, Epoch: i.Epoch, Noted: i.Noted}
		for _, p := range i.By {
			e.By = append(e.By, region.PeerName(p))
		}
		return e
	}
	e := &WrongPeerError{Peer: peer, Property: Property(i.Mismatch), Found: i.Found, Want: i.Want, Tied: i.Tied}
	for _, p := range i.By {
		e.By = append(e.By, region.PeerName(p))
	}
	return e
}

// trust returns nil if the coordinator may use the answers of conn's peer and write to it: its
// cluster is the one that the ring knows, or belongs to no ring yet. trust sends requests only if
// the cluster of this connection was not identified yet, or was found to be the wrong one.
func (cs *clusters) trust(ctx context.Context, conn *region.Conn) error {
	known, err := cs.identities.standing(conn)
	if known && err == nil {
		return nil
	}
	if err := cs.meet(ctx, conn); err != nil {
		return err
	}
	if _, err = cs.identities.standing(conn); excused(ctx, err) {
		return nil
	}
	return err
}

// trusted returns the connection to peer. It returns an error if trust rejects the peer.
func (cs *clusters) trusted(ctx context.Context, peer region.PeerName) (*region.Conn, error) {
	conn, err := cs.directory.Conn(peer)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cs.opts.CallTimeout)
	defer cancel()
	return conn, cs.trust(ctx, conn)
}

// recognize is trust for a peer that must have a PeerSet: objects in a peer without one belong
// to no ring.
func (cs *clusters) recognize(ctx context.Context, conn *region.Conn) error {
	if err := cs.trust(ctx, conn); err != nil {
		return err
	}
	if cs.identities.enrolled(conn) {
		return nil
	}
	_, err := cs.readSet(ctx, conn) // the peer may have a PeerSet by now
	if isAbsent(err) {
		return fmt.Errorf("%w: peer %s has no PeerSet", ErrMembership, conn.Peer())
	}
	return err
}

// readSet reads the PeerSet of a peer now, and judges it together with those last read from the
// other peers. It returns an error if the cluster is the wrong one.
func (cs *clusters) readSet(ctx context.Context, conn *region.Conn) (*readSet, error) {
	if known, _ := cs.identities.standing(conn); !known {
		if err := cs.meet(ctx, conn); err != nil {
			return nil, err
		}
	}
	set, err := cs.sets.read(ctx, conn)
	if err != nil && !isAbsent(err) {
		return nil, err
	}
	cs.identities.update(conn, set)
	if _, wrong := cs.identities.standing(conn); wrong != nil && !excused(ctx, wrong) {
		return nil, wrong
	}
	return set, err
}
