// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"errors"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
)

// API is the set of clients of one API server, as syncer and splitter need them. *Conn and *router.Client implement it.
// It is safe for concurrent use.
type API interface {
	Dynamic() dynamic.Interface
	Metadata() metadata.Interface
	Discovery() Discovery
}

// Discovery is the part of client-go's discovery client that this module uses. It is a separate interface, because
// client-go adds methods to its own from one minor version to the next.
type Discovery interface {
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
	OpenAPIV3() openapi.Client
}

// discoveryTimeout bounds discovery's requests, which carry no context. It equals client-go's default.
const discoveryTimeout = 32 * time.Second

// APIFor makes clients for the API server of c. The clients share one HTTP client. APIFor does not modify c and does no
// I/O.
func APIFor(c *rest.Config) (API, error) {
	if c == nil {
		return nil, errors.New("api: the configuration is nil")
	}
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	return clientsFor(c, client)
}

// RESTFor makes a client for raw requests to the API server of c, with the limits of APIFor's clients. The caller names
// the path of a request and decodes the answer; an error is decoded. RESTFor does not modify c and does no I/O.
func RESTFor(c *rest.Config) (rest.Interface, error) {
	if c == nil {
		return nil, errors.New("rest: the configuration is nil")
	}
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	errorsOnly := runtime.NewScheme()
	metav1.AddToGroupVersion(errorsOnly, schema.GroupVersion{Version: "v1"})
	raw := rest.CopyConfig(c)
	raw.ContentConfig = rest.ContentConfig{ContentType: runtime.ContentTypeJSON, NegotiatedSerializer: serializer.NewCodecFactory(errorsOnly).WithoutConversion()}
	return rest.UnversionedRESTClientForConfigAndClient(raw, meteredClient(client, usual))
}

// APIOf makes an API of existing clients, including client-go's fakes.
func APIOf(d dynamic.Interface, m metadata.Interface, disc Discovery) API {
	return &clients{dynamic: d, metadata: m, discovery: disc}
}

type clients struct {
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery Discovery
}

func (c *clients) Dynamic() dynamic.Interface   { return c.dynamic }
func (c *clients) Metadata() metadata.Interface { return c.metadata }
func (c *clients) Discovery() Discovery         { return c.discovery }

func clientsFor(c *rest.Config, client *http.Client) (*clients, error) {
	return clientsWithin(c, client, usual)
}

func clientsWithin(c *rest.Config, client *http.Client, l limits) (*clients, error) {
	client = meteredClient(client, l)
	d, err := dynamic.NewForConfigAndClient(c, client)
	if err != nil {
		return nil, err
	}
	m, err := metadata.NewForConfigAndClient(c, client)
	if err != nil {
		return nil, err
	}
	bounded := *client
	if bounded.Timeout == 0 {
		bounded.Timeout = discoveryTimeout
	}
	disc, err := discovery.NewDiscoveryClientForConfigAndClient(c, &bounded)
	if err != nil {
		return nil, err
	}
	return &clients{dynamic: d, metadata: m, discovery: disc}, nil
}
