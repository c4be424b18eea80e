// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// setReader reads PeerSets. Each operation reads that of every peer, and each of them
// lists all: what a peer sends again, byte for byte, is not decoded again. It is always
// asked for.
type setReader struct {
	codecs runtime.NegotiatedSerializer

	mu    sync.Mutex
	known map[region.PeerName]*knownSet
	// What most of them have in common, so that it is kept once.
	listed  []v1alpha1.Member
	members []protocol.Member
}

// knownSet is a PeerSet as it was sent last.
type knownSet struct {
	conn   *region.Conn
	client rest.Interface
	sum    [sha256.Size]byte
	set    *readSet // nil before the first answer
}

// readSet is a PeerSet as a peer has it. It is shared and must not be modified.
type readSet struct {
	*v1alpha1.PeerSet // without managed fields

	view protocol.PeerSet
}

func newSetReader() *setReader {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // what errors are told in
	return &setReader{codecs: serializer.NewCodecFactory(scheme).WithoutConversion(), known: map[region.PeerName]*knownSet{}}
}

// read asks a peer for its PeerSet.
func (s *setReader) read(ctx context.Context, conn *region.Conn) (*readSet, error) {
	client, err := s.clientFor(conn)
	if err != nil {
		return nil, err
	}
	result := client.Get().AbsPath("/apis", peerSets.Group, peerSets.Version, peerSets.Resource, v1alpha1.PeerSetName).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	body, err := result.Raw()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	s.mu.Lock()
	known := s.known[conn.Peer()]
	if known != nil && known.set != nil && known.sum == sum {
		defer s.mu.Unlock()
		return known.set, nil
	}
	s.mu.Unlock()
	var set v1alpha1.PeerSet
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("PeerSet: %w", err)
	}
	set.ManagedFields = nil
	read := &readSet{PeerSet: &set, view: viewPeerSet(&set)}
	s.mu.Lock()
	defer s.mu.Unlock()
	set.Spec.Members, s.listed = common(set.Spec.Members, s.listed)
	read.view.Members, s.members = common(read.view.Members, s.members)
	if known := s.known[conn.Peer()]; known != nil {
		known.sum, known.set = sum, read
	}
	return read, nil
}

// common returns had in the place of an equal list, and what is had from then on.
func common[T comparable](list, had []T) (shared, now []T) {
	if slices.Equal(list, had) {
		return had, had
	}
	return list, list
}

// clientFor makes a peer's client once for each connection.
func (s *setReader) clientFor(conn *region.Conn) (rest.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[conn.Peer()]; known != nil && known.conn == conn {
		return known.client, nil
	}
	config := conn.Config()
	config.NegotiatedSerializer = s.codecs
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	s.known[conn.Peer()] = &knownSet{conn: conn, client: client}
	return client, nil
}
