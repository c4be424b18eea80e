// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package coordinated

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/apiserver"
)

// namer returns the text for a peer.
type namer = func(region.PeerName) string

// failure converts an error of a Coordinator. It is pure, except that it reads whether ctx has ended.
func failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	f := known(err)
	if f == nil {
		f = ended(ctx, err)
	}
	f.Err = err
	return f
}

// exists returns the error of an add whose object another operation has added.
func exists(at region.PeerName) *apiserver.FanoutError {
	return &apiserver.FanoutError{Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists,
		Text: func(name namer) string { return "it already exists, in " + name(at) }}
}

func conflict(text func(namer) string) *apiserver.FanoutError {
	return &apiserver.FanoutError{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Text: text}
}

func always(text string) func(namer) string { return func(namer) string { return text } }

// known converts the errors that have a type or a sentinel of their own. It returns nil for all others.
func known(err error) *apiserver.FanoutError {
	var (
		doubt    *fanout.InDoubtError
		held     *fanout.HeldError
		outdated *fanout.ConflictError
		occupied *fanout.OccupiedError
	)
	switch {
	case errors.As(err, &doubt):
		return &apiserver.FanoutError{Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout, Doubt: true, Text: func(name namer) string {
			return "the regions settle it, and this request may be repeated" + silence(name, doubt.Peers)
		}}
	case errors.As(err, &held) && errors.Is(err, fanout.ErrReturned):
		return conflict(func(name namer) string {
			return "an object of this name was removed, and " + name(held.Holder) + " has another one: a region was restored from a backup, and an operator must bring it back"
		})
	case errors.As(err, &held):
		return holder(held)
	case errors.As(err, &outdated):
		return conflict(always("it was changed by another write: read it again"))
	case errors.As(err, &occupied):
		return conflict(func(name namer) string {
			return "its namespace still holds " + occupants(name, occupied) + ": remove them first"
		})
	case errors.Is(err, fanout.ErrNotFound):
		return &apiserver.FanoutError{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Text: always("no region has it")}
	case errors.Is(err, fanout.ErrNoOwner):
		return conflict(always("no active account owns its namespace: create the account first"))
	}
	return nil
}

// silence returns a text that names the peers that do not answer.
func silence(name namer, peers []region.PeerName) string {
	names := make([]string, len(peers))
	for i, p := range peers {
		names[i] = name(p)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return ""
	}
	return "; no answer from " + strings.Join(names, ", ")
}

// holder converts the error for a name that another object has.
func holder(held *fanout.HeldError) *apiserver.FanoutError {
	switch {
	case held.Lost != "":
		return conflict(func(name namer) string {
			return fmt.Sprintf("%s has lost it: an operator must bring it back or release it", name(held.Lost))
		})
	case held.Operation == "":
		return &apiserver.FanoutError{Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists, Text: func(name namer) string {
			return "an object of this name was applied in " + name(held.Holder) + " alone: delete it there, or choose another name"
		}}
	case held.Stage == "Reserved":
		return conflict(func(name namer) string {
			return "another operation holds the name in " + name(held.Holder) + ": try again"
		})
	case held.Stage == "Removing":
		return conflict(func(name namer) string {
			return "it is being removed in " + name(held.Holder) + ": try again when it is gone"
		})
	default:
		return exists(held.Holder)
	}
}

func occupants(name namer, e *fanout.OccupiedError) string {
	var all []string
	for _, o := range e.Occupants {
		all = append(all, fmt.Sprintf("%s %s in %s", o.Resource.Resource, o.Key.Name, name(o.Peer)))
	}
	return strings.Join(all, ", ")
}

// ended converts the error of an operation that ended without effect, or did not begin.
func ended(ctx context.Context, err error) *apiserver.FanoutError {
	peers, refused := causes(err)
	effect := "nothing is in effect"
	if errors.Is(err, fanout.ErrEnded) {
		effect = "it is not in effect now, and perhaps was for a while"
	}
	switch {
	case refused != nil:
		return &apiserver.FanoutError{Code: refused.Code, Reason: refused.Reason, Text: func(name namer) string {
			return fmt.Sprintf("%s refuses it: %s: %s", name(peers[0]), refused.Message, effect)
		}}
	case ctx.Err() != nil:
		return &apiserver.FanoutError{Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout, Text: func(name namer) string {
			return "the time of the request ended: " + effect + silence(name, peers)
		}}
	case errors.Is(err, region.ErrUnavailable), errors.Is(err, fanout.ErrMembership), errors.Is(err, region.ErrNoPeers), errors.Is(err, region.ErrUnknownPeer):
		return &apiserver.FanoutError{Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Text: func(name namer) string {
			return "not all regions can take part now: " + effect + silence(name, peers)
		}}
	case errors.Is(err, fanout.ErrAborted), errors.Is(err, fanout.ErrEnded):
		return conflict(func(name namer) string { return effect + silence(name, peers) + ": try again" })
	default:
		return &apiserver.FanoutError{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Text: always(rejected(err))}
	}
}

// rejected returns why an operation was rejected before it began. Package fanout puts the name of the call and a colon
// before the errors about arguments alone, which name no peer.
func rejected(err error) string {
	for _, call := range []string{"add: ", "update: ", "remove: "} {
		if text, ok := strings.CutPrefix(err.Error(), call); ok {
			return text
		}
	}
	return "it was rejected before it began"
}

// causes returns the peers whose errors are in err, and the status of a peer that refused a write; nil if none did.
// Then this peer is the first.
func causes(err error) (peers []region.PeerName, refused *metav1.Status) {
	var walk func(error, region.PeerName)
	walk = func(err error, at region.PeerName) {
		if e, ok := err.(*region.Error); ok && e.Peer != "" { //nolint:errorlint // each error of the tree
			at = e.Peer
			peers = append(peers, at)
		}
		if api, ok := err.(apierrors.APIStatus); ok && refused == nil && at != "" { //nolint:errorlint // each error of the tree
			if status := api.Status(); status.Code >= http.StatusBadRequest && status.Code < http.StatusInternalServerError && status.Code != http.StatusTooManyRequests {
				refused, peers = &status, []region.PeerName{at}
			}
		}
		switch e := err.(type) { //nolint:errorlint // each error of the tree
		case interface{ Unwrap() error }:
			if inner := e.Unwrap(); inner != nil {
				walk(inner, at)
			}
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				walk(inner, at)
			}
		}
	}
	walk(err, "")
	return peers, refused
}
