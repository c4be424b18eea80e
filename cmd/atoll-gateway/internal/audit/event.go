// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"net"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
)

// Annotations of the events.
const (
	// RegionAnnotation has the region of the request, or "*" for all regions.
	RegionAnnotation = "gateway.atoll.dev/region"
	// LatencyAnnotation has the duration of the request.
	LatencyAnnotation = "gateway.atoll.dev/latency"
)

// Request is a request as an event describes it.
type Request struct {
	Event    proxy.Event
	HTTP     *http.Request
	User     user.Info   // as authenticated; nil: not known
	Acting   router.User // as whom the user acts in the regions
	Received time.Time
}

// EventOf returns the event of a request that has ended.
func EventOf(r Request) *auditv1.Event {
	e := &auditv1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Event"},
		Level:    auditv1.LevelMetadata, Stage: auditv1.StageResponseComplete, AuditID: types.UID(r.Event.AuditID),
		RequestURI: r.HTTP.URL.EscapedPath(), Verb: r.Event.Verb, UserAgent: r.HTTP.UserAgent(),
		RequestReceivedTimestamp: metav1.NewMicroTime(r.Received),
		StageTimestamp:           metav1.NewMicroTime(r.Received.Add(r.Event.Elapsed)),
		Annotations:              map[string]string{LatencyAnnotation: r.Event.Elapsed.String()},
	}
	if host, _, err := net.SplitHostPort(r.HTTP.RemoteAddr); err == nil {
		e.SourceIPs = []string{host}
	}
	if r.User != nil {
		e.User = authenticationv1.UserInfo{Username: r.User.GetName(), UID: r.User.GetUID(), Groups: r.User.GetGroups()}
		if r.Acting.Name != "" {
			e.ImpersonatedUser = &authenticationv1.UserInfo{Username: r.Acting.Name, UID: r.Acting.UID, Groups: r.Acting.Groups}
		}
	}
	if resource := r.Event.Resource; resource.Resource != "" {
		e.ObjectRef = &auditv1.ObjectReference{
			Resource: resource.Resource, APIGroup: resource.Group, APIVersion: resource.Version,
			Namespace: r.Event.Namespace, Name: r.Event.Name, Subresource: r.Event.Subresource,
		}
	}
	if r.Event.Code != 0 {
		e.ResponseStatus = &metav1.Status{Code: int32(r.Event.Code)}
	}
	if region := Region(r.Event); region != "" {
		e.Annotations[RegionAnnotation] = region
	}
	return e
}

// Region returns the region of a request: "*" for all regions, and "" if the path names no region.
func Region(e proxy.Event) string {
	switch {
	case e.All:
		return "*"
	case e.Region.Name == "":
		return ""
	default:
		return e.Region.String()
	}
}
