// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// Class is the kind of repair that a finding needs.
type Class string

const (
	// ClassRepair is repaired by a sweep (a check and repair of all peers), and by an audit with
	// repair.
	ClassRepair Class = "Repair"
	// ClassIdentity means that a peer is not the cluster that the ring knows, that this cannot
	// be checked, or that PeerSets and configuration differ. Nothing is repaired while a peer
	// is the wrong cluster.
	ClassIdentity Class = "Identity"
	// ClassRestored means that a peer was restored from an older state.
	ClassRestored Class = "Restored"
	// ClassConflict needs a person's decision: it is repaired only if a sweep can decide it and the
	// caller names the object.
	ClassConflict Class = "Conflict"
	// ClassInProgress is work under way, which violates nothing.
	ClassInProgress Class = "InProgress"
)

// withClassAndCommand returns the finding with its class and its command. It keeps a class or a command that is
// already set.
func (f finding) withClassAndCommand() finding {
	if f.Class == "" {
		f.Class = f.class()
	}
	if f.Mend == "" {
		f.Mend = f.remedy()
	}
	return f
}

func (f finding) class() Class {
	switch {
	case f.Invariant == "identity" || f.Invariant == "I11":
		return ClassIdentity
	case f.underWay:
		return ClassInProgress
	case f.Invariant == "lost":
		return ClassRestored
	case f.mend.obj == nil || f.Invariant == "conflict":
		return ClassConflict
	default:
		return ClassRepair
	}
}

// remedy returns the command to run for this finding: one that repairs it, or else one that shows
// its cause.
func (f finding) remedy() string {
	name := strings.ToLower(f.Kind.Kind) + "/" + keyString(f.Key)
	repair := "atollctl audit --repair --only " + name
	switch {
	case f.Class == ClassIdentity:
		return "atollctl peers"
	case f.Class == ClassConflict && f.Invariant == "I1" && f.unclaimed:
		return fmt.Sprintf("kubectl --context %s delete %s", f.Peer, f.object())
	case f.Class == ClassConflict && f.Invariant == "claim":
		return fmt.Sprintf("kubectl --context %s edit %s", f.Peer, f.object())
	case f.Class == ClassConflict && f.Invariant == "owner":
		return fmt.Sprintf("atollctl account add -f FILE, for the Account %s", f.Key.Namespace)
	case f.Class == ClassConflict && f.Invariant == "conflict", f.Class == ClassRepair:
		return repair
	case f.Class == ClassConflict:
		return "atollctl operation explain " + name
	case f.Invariant == "membership":
		return "atollctl wal recover"
	case f.Invariant == "held":
		return "atollctl account release " + f.Key.Name
	case f.open != "":
		return "atollctl operation resume " + f.open
	case f.Invariant == "I6" && f.mend.view.Claim.Primary && f.mend.view.Stage == protocol.Reserved:
		return "atollctl operation abort " + f.mend.view.Claim.Operation + " --others"
	default:
		return repair
	}
}

// object returns the object's name for kubectl.
func (f finding) object() string {
	name := strings.ToLower(f.Kind.Kind) + "." + f.Kind.Group + " " + f.Key.Name
	if f.Key.Namespace != "" {
		name += " -n " + f.Key.Namespace
	}
	return name
}

// identityFindings returns a finding for each unread peer that is the wrong cluster, that was
// restored from an older state, or whose identity is unknown. wrong joins the errors of the peers
// that are the wrong cluster; nil if no peer is.
func identityFindings(peers []string, unread map[string]error) (found []Violation, wrong error) {
	for _, p := range peers {
		err := unread[p]
		v := Violation{Invariant: "identity", Class: ClassIdentity, Peer: region.PeerName(p), Kind: peerSetKind}
		switch {
		case errors.Is(err, ErrWrongPeer):
			wrong = errors.Join(wrong, err)
			v.Mend = fmt.Sprintf("correct the kubeconfig of peer %s, then: atollctl peers", p)
		case errors.Is(err, ErrReturned):
			v.Class, v.Mend = ClassRestored, "atollctl peer comeback "+p
		case errors.Is(err, region.ErrIdentityUnknown):
			v.Mend = fmt.Sprintf("atollctl rbac | kubectl --context %s apply -f -", p)
		default:
			continue
		}
		v.Text = err.Error()
		found = append(found, v)
	}
	return found, wrong
}
