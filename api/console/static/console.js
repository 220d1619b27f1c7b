// Conveniences only: every page and every form works without this file.
(function () {
  "use strict";
  document.documentElement.classList.add("scripted");

  function byId(id) { return document.getElementById(id); }

  // One box selects the whole list below it.
  document.addEventListener("change", function (event) {
    if (event.target.dataset.all === undefined) { return; }
    event.target.closest("table").querySelectorAll("input[name=message]").forEach(function (each) {
      each.checked = event.target.checked;
    });
  });

  // An id is shown short; the button beside it copies all of it.
  document.addEventListener("click", function (event) {
    var text = event.target.dataset.copy;
    if (text === undefined) { return; }
    navigator.clipboard.writeText(text).then(function () { event.target.textContent = "copied"; });
  });

  // A list must not move while somebody points at it or is choosing something in it.
  function isChanged(field) {
    if (field.tagName === "SELECT") { return field.selectedIndex > 0; }
    return field.type === "checkbox" ? field.checked : field.value !== field.defaultValue;
  }
  function whyPaused(live) {
    var fields = Array.from(live.querySelectorAll("input:not([type=hidden]), select"));
    if (fields.some(isChanged)) { return "Refresh is paused while a form is filled in."; }
    return live.matches(":hover, :focus-within") ? "Refresh is paused while you are here." : "";
  }
  document.addEventListener("htmx:beforeRequest", function (event) {
    if (event.detail.elt.id !== "live") { return; }
    var why = whyPaused(event.detail.elt), hint = byId("paused");
    hint.hidden = !why;
    hint.textContent = why;
    if (why || document.hidden) { event.preventDefault(); }
  });

  // A page whose refresh fails shows what was true then: it must say so.
  var fresh = new Date();
  document.addEventListener("htmx:afterRequest", function (event) {
    var hint = byId("stale"), status = event.detail.xhr.status;
    if (event.detail.requestConfig.elt.id !== "live" || !hint) { return; }
    if (event.detail.successful) { fresh = new Date(); }
    hint.hidden = event.detail.successful;
    hint.textContent = "Not refreshed since " + fresh.toISOString().slice(11, 19) + " UTC: "
      + (status ? "the API answers " + status : "the API does not answer")
      + ". What is below may have changed.";
  });

  // The local time of a moment is its title.
  function showTimes() {
    document.querySelectorAll("time[datetime]:not([data-age])").forEach(function (each) {
      each.title = new Date(each.dateTime).toLocaleString(undefined, { timeZoneName: "short" });
    });
  }
  document.addEventListener("htmx:afterSettle", showTimes);
  showTimes();
})();
