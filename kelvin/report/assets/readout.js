(function () {
  var box = document.getElementById('readout'), last = null;
  function hide() { box.style.display = 'none'; if (last) last.classList.remove('near'); last = null; }
  document.querySelectorAll('svg.figure').forEach(function (svg) {
    var name = svg.querySelector(':scope > title'), text = svg.querySelector(':scope > desc');
    if (name) { svg.setAttribute('aria-label', name.textContent + '. ' + (text ? text.textContent : ''));
      name.remove(); }
    var items = Array.from(svg.querySelectorAll('.dot, .bin'));
    items.forEach(function (item) { var title = item.querySelector('title');
      item.note = title.textContent; title.remove(); });
    svg.addEventListener('pointerleave', hide);
    svg.addEventListener('pointermove', function (event) {
      var best = null, least = 1600;
      items.forEach(function (item) {
        var r = item.getBoundingClientRect(), x = event.clientX - (r.left + r.width / 2);
        var y = item.classList.contains('bin') ? 0 : event.clientY - (r.top + r.height / 2);
        if (x * x + y * y < least) { least = x * x + y * y; best = item; }
      });
      if (!best) return hide();
      if (last && last !== best) last.classList.remove('near');
      last = best; best.classList.add('near');
      box.textContent = best.note; box.style.display = 'block';
      var left = Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 8);
      box.style.left = Math.max(8, left) + 'px';
      box.style.top = Math.max(8, event.clientY - box.offsetHeight - 12) + 'px';
    });
  });
})();
