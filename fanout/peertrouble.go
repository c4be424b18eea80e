// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/atoll-dev/atoll/region"
)

// severity orders the troubles of one peer: Message reports the greatest.
type severity int

const (
	silent    severity = iota + 1 // a peer did not answer
	unsafe                        // a person has to repair the connection to a peer
	rejecting                     // an API server rejected a request
)

// peerTrouble is why a request to a peer failed, in words that do not depend on the attempt.
type peerTrouble struct {
	peer     region.PeerName
	severity severity
	text     string
}

// peerTroubles returns the greatest trouble of each peer, sorted by peer.
func (t tree) peerTroubles() (troubles []peerTrouble) {
	for in := range t.all() {
		if e, ok := in.err.(*region.Error); ok && e.Peer != "" { //nolint:errorlint // each error of the tree
			if found := peerTroubleOf(e); found.severity > 0 {
				troubles = append(troubles, found)
			}
		}
	}
	slices.SortFunc(troubles, func(a, b peerTrouble) int {
		return cmp.Or(cmp.Compare(a.peer, b.peer), cmp.Compare(b.severity, a.severity), cmp.Compare(a.text, b.text))
	})
	return slices.CompactFunc(troubles, func(a, b peerTrouble) bool { return a.peer == b.peer })
}

func peerTroubleOf(e *region.Error) peerTrouble {
	cause := region.CauseOf(e.Err)
	remedy := cause.Remedy()
	if d, ok := errors.AsType[*region.Diagnosis](e.Err); ok {
		remedy = d.Remedy
	}
	text := string(cause)
	answered := rejection(e.Err)
	switch cause {
	case region.CauseForbidden, region.CauseUnauthorized, region.CauseNotServed, region.CauseWebhook, region.CauseWebhookTimeout:
		return peerTrouble{e.Peer, rejecting, joined(text, remedy)}
	case region.CauseDenied:
		return peerTrouble{e.Peer, rejecting, joined(text, answered, remedy)}
	case region.CauseUnknownAuthority, region.CauseExpired, region.CauseOtherHost, region.CauseTLS, region.CauseOtherCluster:
		return peerTrouble{e.Peer, unsafe, joined(text, remedy)}
	case region.CauseUnknown:
		switch {
		case errors.Is(e.Err, region.ErrUnavailable):
		case answered != "":
			return peerTrouble{e.Peer, rejecting, answered}
		default:
			return peerTrouble{}
		}
	}
	return peerTrouble{e.Peer, silent, "no answer"}
}

// rejection returns the text with which an API server rejected a request; empty if err is another error.
func rejection(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	switch s := status.Status(); s.Code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return s.Message
	default:
		return "" // another 4xx is about the state of the object, which changes with the next attempt
	}
}

func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), ": ")
}

// troubled reports whether a peer has a trouble of one of the severities.
func troubled(t tree, severities ...severity) bool {
	return slices.ContainsFunc(t.peerTroubles(), func(p peerTrouble) bool { return slices.Contains(severities, p.severity) })
}

// textsOfPeers returns one text for each trouble, with the peers that have it.
func textsOfPeers(t tree) (texts []string) {
	peers := map[string][]string{}
	for _, p := range t.peerTroubles() {
		peers[p.text] = append(peers[p.text], string(p.peer))
	}
	for text, names := range peers {
		texts = append(texts, about(region.PeerName(strings.Join(names, ", ")), text))
	}
	if len(texts) == 0 {
		return []string{"a peer does not answer"}
	}
	return texts
}

// about puts the name of a peer before a text, unless the text has it.
func about(peer region.PeerName, text string) string {
	if strings.Contains(text, string(peer)) {
		return text
	}
	return string(peer) + ": " + text
}
