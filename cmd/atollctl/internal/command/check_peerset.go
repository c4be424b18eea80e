// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// defaultLease is the default of fanout.Options.LeaseTimeout.
const defaultLease = 15 * time.Second

// observeSet reads the PeerSet of a peer. It returns nil without an error if the peer has none, or
// does not serve the type; the check of the types reports a type that is not served.
func observeSet(ctx context.Context, c *region.Conn) (*fanoutv1alpha1.PeerSet, error) {
	obj, err := c.Dynamic().Resource(peerSets).Get(ctx, fanoutv1alpha1.PeerSetName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	set := &fanoutv1alpha1.PeerSet{}
	return set, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, set)
}

// membership is the membership of one peer, as several peers show it.
type membership struct {
	peer       string
	configured []string                // the names of all configured peers
	outside    []string                // those that are no member according to themselves
	set        *fanoutv1alpha1.PeerSet // nil if the peer has none
	ring       bool                    // another peer has a PeerSet
	still      bool                    // no peer showed a sign of life of the change for a lease
}

func judgeSet(m membership, err error, c commands) []finding {
	switch {
	case err != nil:
		return []finding{c.unknown(checkPeerSet, err)}
	case m.set == nil && m.ring:
		return []finding{warned(checkPeerSet, c.changing("peer", "join", m.peer), "it has no PeerSet, so it is no member of the ring of the other peers")}
	case m.set == nil:
		return []finding{failed(checkPeerSet, c.reading("peer", "init"), "it has no PeerSet, so nothing can be added")}
	}
	var members []string
	for _, member := range m.set.Spec.Members {
		members = append(members, member.Peer)
	}
	slices.Sort(members)
	var findings []finding
	if unnamed := without(members, m.configured); len(unnamed) > 0 {
		findings = append(findings, failed(checkPeerSet, "name all members of the ring with --config, --kubeconfig or --context",
			"members that are not configured: %s", strings.Join(unnamed, ", ")))
	}
	for _, other := range without(m.configured, append(members, m.outside...)) {
		findings = append(findings, warned(checkPeerSet, c.changing("peer", "join", other), "%s is configured, and no member according to this PeerSet", other))
	}
	if m.set.Spec.Change != nil {
		findings = append(findings, judgeChange(m, c))
	} else if again := ending(m.set.Spec.Self.State); again != "" {
		findings = append(findings, warned(checkPeerSet, c.changing("peer", again, m.peer), "the peer is %s, and no change is under way", m.set.Spec.Self.State))
	}
	if len(findings) == 0 {
		findings = append(findings, passed(checkPeerSet, "%s; members %s", m.set.Spec.Self.State, strings.Join(members, ", ")))
	}
	return findings
}

// judgeChange judges the change of the membership that occupies the slot of a PeerSet.
func judgeChange(m membership, c commands) finding {
	change := m.set.Spec.Change
	text := fmt.Sprintf("the peer is %s; %s of %s by %s", m.set.Spec.Self.State, change.Kind, change.Peer, or(change.Coordinator))
	if !m.still {
		return warned(checkPeerSet, "wait until it is done", "%s is under way", text)
	}
	command := c.changing("peer", strings.ToLower(change.Kind), change.Peer)
	if change.Kind == "ForceRemove" {
		command = c.changing("peer", "force-remove", change.Peer, "--by", quoted(or(change.By)), "--i-know-it-never-returns")
	}
	f := failed(checkPeerSet, command, "%s showed no sign of life for a lease: the same command finishes it", text)
	f.code = exitDoubt
	return f
}

// ending returns the command that ends a state which a peer has only during a change; empty for a
// full member.
func ending(state fanoutv1alpha1.PeerState) string {
	switch state {
	case fanoutv1alpha1.PeerJoining, fanoutv1alpha1.PeerOut:
		return "join"
	case fanoutv1alpha1.PeerLeaving:
		return "leave"
	case fanoutv1alpha1.PeerQuarantined:
		return "comeback"
	}
	return ""
}

// without returns the elements of list that are not in excluded.
func without(list, excluded []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(excluded, s) })
}

// stillChanges returns the IDs of the changes of which no peer shows progress between two reads. A
// change shows its heartbeat at its anchor, so it is not judged if the anchor was not read.
func stillChanges(before, after map[string]*fanoutv1alpha1.PeerSet) map[string]bool {
	still := map[string]bool{}
	alive := map[string]bool{}
	for peer, set := range before {
		if set == nil || set.Spec.Change == nil {
			continue
		}
		was := set.Spec.Change
		still[was.ID] = true
		now := after[peer]
		unread := now == nil || was.Anchor != "" && before[was.Anchor] == nil
		if unread || now.Spec.Change == nil || *now.Spec.Change != *was {
			alive[was.ID] = true
		}
	}
	for id := range alive {
		delete(still, id)
	}
	return still
}
