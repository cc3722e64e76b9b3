/**
 * Names that browsers give to all scripts: those of the library `dom` of TypeScript, without those of events and of
 * fields of the window that are mostly variables, as `status` and `parent`.
 */

/** By what they begin or end with, and their own classes. */
const FAMILY = new RegExp(
  '^(?:HTML|SVG|CSS|GPU|DOM|RTC|IDB|MIDI|WebGL|XML|XPath|Audio|Media|Speech|Navigation|Performance|Payment|FileSystem|' +
    'TextTrack|Touch|Geolocation|Push|ServiceWorker|Image|Video|Gamepad|Readable|Writable)\\w*$|' +
    '^[A-Z]\\w*(?:Event|Observer|Stream|Node|List)$',
);
const NAMES = new Set(
  `AbortSignal AbstractRange Animation AnimationEffect AnimationTimeline Attr AuthenticatorAssertionResponse
    AuthenticatorAttestationResponse AuthenticatorResponse BarProp BaseAudioContext BroadcastChannel
    ByteLengthQueuingStrategy CDATASection Cache CacheStorage CanvasCaptureMediaStreamTrack CanvasGradient
    CanvasPattern CanvasRenderingContext2D CaretPosition CharacterData Clipboard ClipboardItem Comment CookieStore
    CookieStoreManager CountQueuingStrategy Credential CredentialsContainer Crypto CryptoKey CustomElementRegistry
    CustomStateSet DataTransfer DataTransferItem DigitalCredential Document DocumentFragment DocumentTimeline
    DocumentType Element ElementInternals EncodedAudioChunk EncodedVideoChunk Event EventCounts EventSource
    EventTarget External File FileReader FontFace FontFaceSet FormData FragmentDirective Headers Highlight
    HighlightRegistry History IdleDeadline InputDeviceInfo IntersectionObserverEntry KeyframeEffect
    LargestContentfulPaint Location Lock LockManager MathMLElement MessageChannel MessagePort MimeType MimeTypeArray
    MutationRecord NamedNodeMap Navigator NavigatorLogin Node NodeFilter NodeIterator Notification OfflineAudioContext
    OffscreenCanvas OffscreenCanvasRenderingContext2D Option OverconstrainedError Path2D PeriodicWave PermissionStatus
    Permissions PictureInPictureWindow Plugin PluginArray ProcessingInstruction PublicKeyCredential Range
    RemotePlayback Request ResizeObserverEntry ResizeObserverSize Response Sanitizer Scheduler Screen
    ScreenOrientation ScrollTimeline Selection ShadowRoot SharedWorker SourceBuffer StaticRange Storage StorageManager
    StylePropertyMap StylePropertyMapReadOnly StyleSheet SubtleCrypto TaskController TaskSignal Text TextDecoder
    TextEncoder TextMetrics TimeRanges TransformStreamDefaultController TreeWalker URLPattern URLSearchParams
    UserActivation VTTCue VTTRegion ValidityState ViewTimeline ViewTransition ViewTransitionTypeSet VisualViewport
    WGSLLanguageFeatures WakeLock WakeLockSentinel WebKitCSSMatrix WebSocket WebTransport WebTransportError Window
    Worker Worklet XSLTProcessor addEventListener alert atob blur btoa caches cancelAnimationFrame cancelIdleCallback
    captureEvents clearInterval clearTimeout close confirm cookieStore createImageBitmap crossOriginIsolated crypto
    customElements devicePixelRatio dispatchEvent document fetch focus getComputedStyle getSelection history indexedDB
    innerHeight innerWidth isSecureContext localStorage location matchMedia moveBy moveTo navigation navigator open
    originAgentCluster outerHeight outerWidth pageXOffset pageYOffset performance postMessage print prompt
    queueMicrotask releaseEvents removeEventListener reportError requestAnimationFrame requestIdleCallback resizeBy
    resizeTo scheduler screen screenLeft screenTop screenX screenY scroll scrollBy scrollTo scrollX scrollY
    sessionStorage setInterval setTimeout speechSynthesis stop toString visualViewport webkitURL`.split(/\s+/),
);

export const isBrowserName = (name: string): boolean => NAMES.has(name) || FAMILY.test(name);
