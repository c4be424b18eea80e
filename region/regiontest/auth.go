// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// authenticate determines the user of the request. A client certificate takes precedence over a bearer token, as on a
// real server.
func (s *Server) authenticate(c *call) error {
	user := User{Name: "system:admin", Groups: []string{"system:masters", "system:authenticated"}}
	token, bearer := strings.CutPrefix(c.http.Header.Get("Authorization"), "Bearer ")
	switch tls := c.http.TLS; {
	case tls != nil && len(tls.PeerCertificates) > 0:
		subject := tls.PeerCertificates[0].Subject
		user = User{Name: subject.CommonName, Groups: append(subject.Organization, "system:authenticated")}
	case s.opts.Tokens == nil:
	case bearer:
		known, ok := s.opts.Tokens[strings.TrimSpace(token)]
		if !ok {
			return apierrors.NewUnauthorized("Unauthorized")
		}
		user = known
	default:
		user = User{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	}
	c.User = user
	return c.impersonate()
}

// authorize calls the hook Options.Authorize for each right that an impersonation needs, and then for the request
// itself. It returns a 403 for the first rejection.
func (s *Server) authorize(c *call) error {
	if s.opts.Authorize == nil {
		return nil
	}
	for _, ask := range c.impersonations() {
		if err := s.opts.Authorize(ask); err != nil {
			return forbidden(ask, err)
		}
	}
	ask := c.Request
	if ask.Name == "" {
		// A list or watch of one object by its name needs the right for this object, as on a real server.
		if selected, err := fields.ParseSelector(c.query.Get("fieldSelector")); err == nil {
			ask.Name, _ = selected.RequiresExactMatch("metadata.name")
		}
	}
	if err := s.opts.Authorize(ask); err != nil {
		return forbidden(c.Request, err)
	}
	return nil
}

// forbidden returns a 403 with the message of a real server, followed by reason.
func forbidden(r Request, reason error) error {
	if r.Resource == "" {
		return apierrors.NewForbidden(schema.GroupResource{}, "", withReason(fmt.Sprintf("User %q cannot %s path %q", r.User.Name, r.Verb, r.Path), reason))
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	message := fmt.Sprintf("User %q cannot %s resource %q in API group %q", r.User.Name, r.Verb, resource, r.Group)
	if r.Namespace != "" {
		message += fmt.Sprintf(" in the namespace %q", r.Namespace)
	} else {
		message += " at the cluster scope"
	}
	return apierrors.NewForbidden(r.GroupResource(), r.Name, withReason(message, reason))
}

func withReason(message string, reason error) error {
	if text := reason.Error(); text != "" {
		return fmt.Errorf("%s: %s", message, text)
	}
	return fmt.Errorf("%s", message)
}

// serveReview responds to a SelfSubjectAccessReview. It allows everything except resource attributes that
// Options.Authorize rejects. It returns false, and writes nothing, if c is another request.
func (s *Server) serveReview(w http.ResponseWriter, c *call, gvr schema.GroupVersionResource) bool {
	if gvr != (schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}) || c.Verb != "create" {
		return false
	}
	body, err := c.body()
	if err != nil {
		s.fail(w, c, err)
		return true
	}
	review, err := decodeObject(body)
	if err != nil {
		s.fail(w, c, err)
		return true
	}
	review["status"] = map[string]any{"allowed": true}
	if spec, ok := review["spec"].(map[string]any); ok {
		if a, ok := spec["resourceAttributes"].(map[string]any); ok && s.opts.Authorize != nil {
			ask := Request{
				Time: c.Time, User: c.User, Impersonator: c.Impersonator,
				Verb: text(a["verb"]), Group: text(a["group"]), Version: text(a["version"]), Resource: text(a["resource"]),
				Subresource: text(a["subresource"]), Namespace: text(a["namespace"]), Name: text(a["name"]),
			}
			if err := s.opts.Authorize(ask); err != nil {
				review["status"] = map[string]any{"allowed": false, "reason": err.Error()}
			}
		}
	}
	writeJSON(w, c, http.StatusCreated, review)
	return true
}

func text(v any) string {
	t, _ := v.(string)
	return t
}
