// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// refusals returns the error of requests to regions, before the Fanout has written anything; nil if each succeeded. A
// refusal by a region has that region's name and status. Otherwise the answer is a 503 with the names of all regions
// that did not answer.
func (j *joint) refusals(name string, routes []router.Route, errs []error) error {
	var silent []string
	for i, err := range errs {
		k := routes[i].Region
		if err == nil {
			continue
		}
		if fanout := (*FanoutError)(nil); errors.As(err, &fanout) {
			return err
		}
		if status, ok := statusOf(err); ok {
			return &apierrors.StatusError{ErrStatus: j.cleanStatus(k, status)}
		}
		silent = append(silent, k.String())
	}
	if silent == nil {
		return nil
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("%s was not written: no answer from region %s", name, strings.Join(silent, ", ")))
}

// cleanStatus returns the status of region k as the caller gets it: with the name of the region, and without the names
// of peers.
func (j *joint) cleanStatus(k region.Key, status metav1.Status) metav1.Status {
	status.Message = fmt.Sprintf("region %s: %s", k, j.clean(status.Message))
	if status.Details == nil {
		return status
	}
	details := *status.Details
	details.RetryAfterSeconds = 0 // the caller decides whether it repeats a write
	details.Causes = slices.Clone(details.Causes)
	for i := range details.Causes {
		details.Causes[i].Message = j.clean(details.Causes[i].Message)
	}
	status.Details = &details
	return status
}

// statusOf returns the status with which a region refused a request. It returns false if the region did not answer, or
// answered that it cannot serve the request now.
func statusOf(err error) (metav1.Status, bool) {
	var way *region.Error
	var api apierrors.APIStatus
	if errors.As(err, &way) || !errors.As(err, &api) {
		return metav1.Status{}, false
	}
	status := api.Status()
	return status, status.Code >= http.StatusBadRequest && status.Code < http.StatusInternalServerError && status.Code != http.StatusTooManyRequests
}

// twice returns the 409 for a name that several peers have a primary of.
func (j *joint) twice(name string, found Found) error {
	return apierrors.NewConflict(j.kind.Resource.GroupResource(), name, fmt.Errorf(
		"%s each have an object of this name: read it again; if they still do, a region was restored from a backup, and an operator must bring it back", j.names(found.Homes)))
}

// silent returns the 503 for peers that did not answer.
func (j *joint) silent(what string, peers []region.PeerName) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("%s: no answer from %s", what, j.names(peers)))
}

func (j *joint) names(peers []region.PeerName) string {
	names := make([]string, len(peers))
	for i, p := range peers {
		names[i] = j.name(p)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// failed returns the answer to an operation of the Fanout that failed. done is what the operation does, such as
// "created".
func (j *joint) failed(done, name string, err error) error {
	fanout := (*FanoutError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fanout):
		text := fmt.Sprintf("%s %s is not %s", j.kind.Resource.Resource, name, done)
		if fanout.Doubt {
			text = fmt.Sprintf("whether %s %s is %s is not known yet", j.kind.Resource.Resource, name, done)
		}
		text += ": " + j.clean(fanout.Text(j.name))
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: fanout.Code, Reason: fanout.Reason, Message: text,
			Details: &metav1.StatusDetails{Name: name, Group: j.kind.Resource.Group, Kind: j.kind.Resource.Resource}}}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return apierrors.NewTimeoutError(fmt.Sprintf("%s is not %s: the time of the request ended before it began", name, done), 0)
	default:
		return apierrors.NewInternalError(errors.New("the operation failed"))
	}
}

// name returns how answers call a peer: by its regions.
func (j *joint) name(peer region.PeerName) string {
	var names []string
	for _, route := range j.routes {
		if route.Peer == peer {
			names = append(names, route.Region.String())
		}
	}
	switch len(names) {
	case 0:
		return "a region that is not served here"
	case 1:
		return "region " + names[0]
	default:
		return "regions " + strings.Join(names, ", ")
	}
}

// clean replaces names of peers in the text of a region or of a Fanout.
func (j *joint) clean(text string) string {
	for _, route := range j.routes {
		if peer := string(route.Peer); peer != "" && strings.Contains(text, peer) {
			word := regexp.MustCompile(`(^|[^a-zA-Z0-9.-])(?:peer )?` + regexp.QuoteMeta(peer) + `($|[^a-zA-Z0-9.-]|\.$|\. )`)
			text = word.ReplaceAllString(text, "${1}"+j.name(route.Peer)+"${2}")
		}
	}
	return text
}
